"""A real gateway on loopback that trains: tiny encoder, real store, real workers, the real SDK."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openai
import uvicorn
from openai import OpenAI
from tiny_models import save_encoder

from connectors.router import LiteLlmParams, ModelEntry
from gateway.app import create_app
from gateway.bootstrap import build_pipeline, build_services
from gateway.config import ServerConfig
from gateway.services import Services
from gateway.settings import Settings

TINY = "tiny-encoder"
ALIAS = "ft:gpt-4o-mini:org::abc"  # a provider's own


def save_tiny_encoder(models_dir: Path) -> Path:
    """A two-layer BERT with random weights and MiniLM's vocabulary."""
    return save_encoder(models_dir / TINY, layers=2, seed=7, pooler=False)


CANARY = "xylophonist Oberhuber"


def rows(count: int = 60, salt: str = "") -> bytes:
    """Classification rows that a bag of words separates."""
    good, bad = "a wonderful happy delight", "a terrible awful failure"
    lines = [
        {"text": f"{(good, bad)[i % 2]} {salt}{i} {CANARY}", "label": ("good", "bad")[i % 2]}
        for i in range(count)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


@dataclass
class Running:
    """A gateway that serves, and clients of two tenants."""

    services: Services
    url: str
    acme: OpenAI
    other: OpenAI
    server: uvicorn.Server
    thread: threading.Thread
    started: list[str] = field(default_factory=list)

    def upload(self, content: bytes, client: OpenAI | None = None) -> str:
        return (
            (client or self.acme)
            .files.create(file=("train.jsonl", content), purpose="fine-tune")
            .id
        )

    def create(self, training_file: str, client: OpenAI | None = None, **more: Any) -> Any:
        """Create a job; settings go into ``hyperparameters``, the SDK's fields beside them."""
        fields = {"validation_file", "suffix", "seed", "metadata", "extra_headers", "model"}
        own = {name: more.pop(name) for name in list(more) if name in fields}
        own.setdefault("model", TINY)
        settings = {"steps": 6, "batch_size": 20, "epsilon": 4.0, **more}
        method: Any = {"type": "dp_bitfit", "dp_bitfit": {"hyperparameters": settings}}
        made = (client or self.acme).fine_tuning.jobs.create(
            training_file=training_file, method=method, **own
        )
        self.started.append(made.id)
        return made

    def wait(self, job_id: str, *statuses: str, seconds: float = 60) -> Any:
        """Wait for a state."""
        deadline = time.monotonic() + seconds
        wanted = statuses or ("succeeded",)
        while True:
            job = self.acme.fine_tuning.jobs.retrieve(job_id)
            if job.status in wanted:
                return job
            assert job.status not in ("failed", "cancelled", "succeeded"), (job.status, job.error)
            assert time.monotonic() < deadline, (job.status, job.to_dict())
            time.sleep(0.1)

    def wait_for_steps(self, job_id: str) -> None:
        """Wait until a job has taken some steps and has most of them before it."""
        while self.acme.fine_tuning.jobs.retrieve(job_id).to_dict()["penname"]["steps_done"] < 2:
            time.sleep(0.05)

    def folder(self, job_id: str) -> Path:
        return self.services.settings.resolved_jobs_dir / job_id

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(30)
        assert not self.thread.is_alive()


def settings_of(folder: Path, **more: Any) -> Settings:
    return Settings(
        data_dir=folder,
        **{"job_lease_seconds": 3.0, "training_epsilon": 6.0, "training_delta": 1e-3, **more},
    )


@contextmanager
def running_gateway(folder: Path, **more: Any) -> Iterator[Running]:
    services = build_services(settings_of(folder, **more))
    params = LiteLlmParams(model="openai/unused", api_base="http://127.0.0.1:9", api_key="sk-none")
    entries = [ModelEntry(model_name=name, litellm_params=params) for name in ("unused", ALIAS)]
    app = create_app(services, build_pipeline(services, ServerConfig(model_list=entries)))
    sock = socket.socket(proto=socket.IPPROTO_TCP)
    sock.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/v1"
    clients = []
    for tenant in ("acme", "other"):
        services.tenants.ensure(tenant)
        key, _ = services.keys.create("client", tenant)
        clients.append(openai.OpenAI(base_url=url, api_key=key, max_retries=0))
    running = Running(services, url, clients[0], clients[1], server, thread)
    try:
        yield running
    finally:
        for client in clients:
            client.close()
        running.close()
        sock.close()
        services.workers.shutdown(wait=True)
        services.vectors.close()
        services.db.close()
