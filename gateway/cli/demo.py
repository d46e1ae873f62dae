"""`penname demo`: the main job on embedded defaults, with what each side saw."""

import hashlib
import threading
import time
from pathlib import Path
from typing import Any

import orjson
import uvicorn
from rich.console import Console

from connectors.weights import WeightsError, chat_model_gguf
from gateway.app import create_app
from gateway.bootstrap import build_pipeline, build_services
from gateway.cli import demo_view
from gateway.cli.console import CommandError, listening_socket, progress
from gateway.cli.ingest import ingest_paths
from gateway.config import LOCAL_MODEL, default_config
from gateway.events import Answered, Event, EventBus, Sanitised
from gateway.services import Services
from gateway.settings import Settings
from policies.loader import load_policy

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
_SUFFIXES = frozenset((".txt", ".md", ".html", ".pdf", ".eml"))
QUESTIONS = (
    "Who is the treating doctor of Henrik Aldous?",
    "Who runs the payroll office?",
    "Who leads the travel desk?",
)
# Short chunks: a small model is not to be led astray by the other names of a page.
_CHUNKING = {
    "type": "static",
    "static": {"max_chunk_size_tokens": 50, "chunk_overlap_tokens": 0},
}
_TENANT = "demo"
_MAX_TOKENS = 40


class Recorder:
    """Keeps the events of the last request; they arrive in worker threads."""

    def __init__(self) -> None:
        self.sanitised: Sanitised | None = None
        self.answered = threading.Event()
        self.answer: Answered | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, Sanitised):
            self.sanitised = event
        elif isinstance(event, Answered):
            self.answer = event
            self.answered.set()


def run(json_file: Path | None, data_dir: Path, policy: str) -> None:
    """Hold the conversation; show it, or write it as JSON.

    Raises:
        CommandError: the local model is missing, or the file cannot be written.
    """
    if json_file is not None:
        _check_writable(json_file)
    _check_model()
    load_policy(policy)
    settings = Settings(data_dir=data_dir, policy=policy)
    services = build_services(settings)
    try:
        result = _demonstrate(services, policy, Console() if json_file is None else None)
    finally:
        services.close()
    if json_file is not None:
        json_file.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2))


def _check_writable(file: Path) -> None:
    try:
        file.open("ab").close()
    except OSError as error:
        raise CommandError(f"--json {file}: cannot be written ({error.strerror})") from None


def _check_model() -> None:
    try:
        chat_model_gguf()
    except WeightsError as error:
        raise CommandError(
            f"the demo needs the local chat model as its provider. {error}"
        ) from None


def _demonstrate(services: Services, policy: str, out: Console | None) -> dict[str, Any]:
    services.tenants.ensure(_TENANT)
    store_id = documents(services)
    recorder = Recorder()
    config = default_config()
    config.retrieval = load_policy(policy).retrieval.model_copy(
        update={"vector_stores": (store_id,), "top_k": 1}
    )
    pipeline = build_pipeline(services, config, events=EventBus([recorder]))
    # A key for this run only, on loopback; it is never shown and is revoked at the end.
    key, record = services.keys.create("client", _TENANT, "demo")
    server, port = _start(create_app(services, pipeline))
    try:
        turns = _converse(port, key, recorder, out)
        if out is not None:
            demo_view.show_account(out, _account(services, pipeline, recorder))
        return {"turns": turns, "epsilon_total": _spent(recorder)}
    finally:
        server.should_exit = True
        services.keys.revoke(record.id)


def documents(services: Services) -> str:
    """Return the store of the samples; one that an interrupted run left half is made anew.

    Raises:
        CommandError: samples are missing or cannot be read.
    """
    files = sorted(p for p in SAMPLES.glob("*") if p.suffix in _SUFFIXES and p.name != "README.md")
    if not files:
        raise CommandError(f"the sample documents are missing from {SAMPLES}")
    content = b"".join(p.read_bytes() for p in files) + orjson.dumps(_CHUNKING)
    name = f"samples-{hashlib.sha256(content).hexdigest()[:12]}"
    for row in services.documents.list(_TENANT):
        if row.name == name and row.file_counts.get("completed") == len(files):
            return row.id
        for attached in services.documents.files(_TENANT, row.id):
            services.files.delete(_TENANT, attached.file_id)
        services.documents.delete(_TENANT, row.id)
    with progress("ingesting the sample documents") as report:
        store_id, failed = ingest_paths(services, _TENANT, name, files, report, _CHUNKING)
    if failed:
        raise CommandError(f"could not ingest {', '.join(failed)}")
    return store_id


def _start(app: Any) -> tuple[uvicorn.Server, int]:
    sock = listening_socket("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True).start()
    deadline = time.monotonic() + 30
    while not server.started:
        if time.monotonic() > deadline:
            raise CommandError("the gateway did not start within 30 seconds")
        time.sleep(0.02)
    return server, sock.getsockname()[1]


def _converse(port: int, key: str, recorder: Recorder, out: Console | None) -> list[dict[str, Any]]:
    from openai import OpenAI

    client = OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=key, max_retries=0)
    history: list[dict[str, str]] = []
    turns: list[dict[str, Any]] = []
    session = f"demo-{time.time_ns()}"
    if out is not None:
        demo_view.introduce(out)
    for question in QUESTIONS:
        history.append({"role": "user", "content": question})
        recorder.answered.clear()
        with Console(stderr=True).status("the local model answers ..."):
            answer = _ask(client, history, session)
        history.append({"role": "assistant", "content": answer})
        recorder.answered.wait(10)
        turns.append(_turn(question, answer, recorder))
        if out is not None:
            demo_view.show_turn(out, turns[-1])
    return turns


def _ask(client: Any, history: list[dict[str, str]], session: str) -> str:
    stream = client.chat.completions.create(
        model=LOCAL_MODEL,
        messages=history,
        stream=True,
        temperature=0,
        max_tokens=_MAX_TOKENS,
        extra_headers={"x-penname-session": session},
    )
    return "".join(c.choices[0].delta.content or "" for c in stream if c.choices)


def _turn(question: str, answer: str, recorder: Recorder) -> dict[str, Any]:
    sanitised, answered = recorder.sanitised, recorder.answer
    if sanitised is None or answered is None:
        raise CommandError("the gateway reported no event for this turn")
    return {
        "user": question,
        "context": [chunk.text for chunk in sanitised.context],
        "sent": sanitised.payload.decode(),
        "received": answered.received[0] if answered.received else "",
        "restored": answer,
        "entities": [
            {
                "original": entity.original,
                "substitute": entity.substitute,
                "type": entity.type,
                "epsilon": entity.epsilon,
            }
            for entity in sanitised.entities
        ],
    }


def _spent(recorder: Recorder) -> float:
    return recorder.sanitised.epsilon_spent if recorder.sanitised is not None else 0.0


def _account(services: Services, pipeline: Any, recorder: Recorder) -> dict[str, Any] | None:
    from gateway.api.privacy.service import describe

    if recorder.sanitised is None:
        return None
    return describe(services, pipeline, _TENANT, recorder.sanitised.session_id)
