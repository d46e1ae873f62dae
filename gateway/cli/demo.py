"""`penname demo`: the main job on embedded defaults, with what each side saw."""

import hashlib
import socket
import threading
import time
from pathlib import Path
from typing import Any

import orjson
import uvicorn
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from gateway.app import create_app
from gateway.bootstrap import build_pipeline, build_services
from gateway.cli.console import CommandError, progress
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
    "Who runs the payroll?",
    "Who leads the travel desk?",
)
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
    """Hold the conversation; show it, or write it as JSON."""
    out = Console()
    settings = Settings(data_dir=data_dir, policy=policy)
    services = build_services(settings)
    services.tenants.ensure(_TENANT)
    store_id = _documents(services)
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
        turns = _converse(port, key, recorder, out if json_file is None else None)
        result = {"turns": turns, "epsilon_total": _spent(recorder)}
        if json_file is None:
            _show_account(out, services, pipeline, recorder)
        else:
            json_file.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2))
    finally:
        server.should_exit = True
        services.keys.revoke(record.id)
        services.close()


def _documents(services: Services) -> str:
    files = sorted(p for p in SAMPLES.glob("*") if p.suffix in _SUFFIXES)
    if not files:
        raise CommandError(f"the sample documents are missing from {SAMPLES}")
    digest = hashlib.sha256(b"".join(p.read_bytes() for p in files)).hexdigest()[:12]
    name = f"samples-{digest}"
    for row in services.documents.list(_TENANT):
        if row.name == name:
            return row.id
    with progress("ingesting the sample documents") as report:
        store_id, failed = ingest_paths(services, _TENANT, name, files, report)
    if failed:
        raise CommandError(f"could not ingest {', '.join(failed)}")
    return store_id


def _start(app: Any) -> tuple[uvicorn.Server, int]:
    sock = socket.socket(proto=socket.IPPROTO_TCP)  # else asyncio leaves Nagle on
    sock.bind(("127.0.0.1", 0))
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
    turns = []
    session = f"demo-{time.time_ns()}"
    for question in QUESTIONS:
        history.append({"role": "user", "content": question})
        recorder.answered.clear()
        answer = ""
        stream: Any = client.chat.completions.create(
            model=LOCAL_MODEL,
            messages=history,  # type: ignore[arg-type]
            stream=True,
            temperature=0,
            max_tokens=_MAX_TOKENS,
            extra_headers={"x-penname-session": session},
        )
        for chunk in stream:
            answer += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        history.append({"role": "assistant", "content": answer})
        recorder.answered.wait(10)
        turns.append(_turn(question, answer, recorder))
        if out is not None:
            _show(out, turns[-1])
    return turns


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


def _show(out: Console, turn: dict[str, Any]) -> None:
    originals = [e["original"] for e in turn["entities"]]
    substitutes = [e["substitute"] for e in turn["entities"]]
    sent = orjson.loads(turn["sent"])["messages"][-1]["content"]
    asked = turn["user"] + "\n\n" + "\n\n".join(turn["context"])
    width = max(40, out.width // 2 - 2)
    panes = (
        ("what the user wrote, and what was retrieved", asked, originals, "green"),
        ("what the provider received", sent, substitutes, "magenta"),
        ("what it answered", turn["received"], substitutes, "magenta"),
        ("what the user reads", turn["restored"], originals, "green"),
    )
    out.rule(turn["user"])
    out.print(
        Columns(
            [
                Panel(_marked(text, words, colour), title=title, width=width)
                for title, text, words, colour in panes
            ]
        )
    )
    table = Table("original", "substitute", "type", "ε")
    for entity in turn["entities"]:
        table.add_row(
            entity["original"], entity["substitute"], entity["type"], f"{entity['epsilon']:.3f}"
        )
    out.print(table)


def _marked(text: str, words: list[str], colour: str) -> Text:
    marked = Text(text)
    parts = {part for word in words for part in (word, *word.split()) if len(part) > 2}
    marked.highlight_words(sorted(parts, key=len, reverse=True), style=f"bold {colour}")
    return marked


def _show_account(out: Console, services: Services, pipeline: Any, recorder: Recorder) -> None:
    from gateway.api.privacy.service import describe

    if recorder.sanitised is None:
        return
    account = describe(services, pipeline, _TENANT, recorder.sanitised.session_id)
    if account is None:
        return
    table = Table("pool", "size", "used", "remaining", title="pool levels")
    for pool in account["pools"]:
        table.add_row(pool["type"], *(str(pool[k]) for k in ("size", "used", "remaining")))
    out.print(table)
    ledger, budget = account["ledger"], account["budget"]
    out.print(
        f"ε spent {ledger['epsilon']:.3f} of {budget['epsilon']} in {ledger['rows']} ledger rows; "
        f"best bound: {ledger['best']['name']}",
        style="bold",
        highlight=False,
    )
