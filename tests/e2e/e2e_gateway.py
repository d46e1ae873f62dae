"""Starting a whole gateway on loopback, with a log of everything that it writes."""

import logging
import re
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
import yaml
from e2e_upstream import Recording, recording_upstream
from openai import InternalServerError, OpenAI

from connectors.router import LiteLlmParams, ModelEntry
from gateway.app import create_app
from gateway.bootstrap import build_pipeline, build_services
from gateway.cli.serve import quiet_libraries
from gateway.config import ServerConfig
from gateway.events import Event
from gateway.pipeline import Pipeline
from gateway.services import Services
from gateway.settings import Settings
from privacy.detection.engine import Detector
from store.ledger import Ledger

BALANCED = Path(__file__).parents[2] / "policies" / "defaults" / "balanced.yaml"


class Gateway:
    """A running gateway."""

    def __init__(
        self, url: str, key: str, services: Services, pipeline: Pipeline, upstream: Recording
    ) -> None:
        self.url = url
        self.key = key
        self.services = services
        self.pipeline = pipeline
        self.upstream = upstream
        self.events: list[Event] = []
        pipeline.events.subscribe(self.events.append)
        self._client = OpenAI(
            base_url=url, api_key=key, max_retries=0, timeout=120, _strict_response_validation=True
        )
        self.http = httpx.Client(headers={"authorization": f"Bearer {key}"}, timeout=120)

    def client(self) -> OpenAI:
        return self._client

    def ask(self, messages: Any, session: str, stream: bool = False, **more: Any) -> str:
        """Return the answer's text; ``messages`` may be the text of one user message."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        headers = {"x-penname-session": session}
        if not stream:
            done = self._client.chat.completions.create(
                model="test-model", messages=messages, extra_headers=headers, **more
            )
            return done.choices[0].message.content or ""
        chunks = self._client.chat.completions.create(
            model="test-model", messages=messages, extra_headers=headers, stream=True, **more
        )
        return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)

    def post(self, body: Any, session: str = "", path: str = "/chat/completions") -> httpx.Response:
        """POST a raw body: bytes as they are, anything else as JSON."""
        headers = {"x-penname-session": session} if session else {}
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        return self.http.post(f"{self.url}{path}", headers=headers, **content)

    def ask_again(self, text: str, session: str) -> str:
        """Ask until the gateway is free to answer, for half a minute at most."""
        end = time.monotonic() + 30
        while True:
            try:
                return self.ask(text, session)
            except InternalServerError:
                if time.monotonic() > end:
                    raise

    def account(self, session: str) -> tuple[int, int, float]:
        """Return version, ledger rows and ε of a session; zeros when there is none."""
        snapshot = self.services.sessions.get("acme", session)
        rows = len(Ledger(self.services.db).rows("acme", session))
        return (snapshot.version, rows, snapshot.spent_epsilon) if snapshot else (0, rows, 0.0)


def found_in(text: str | bytes, words: Iterable[str]) -> list[str]:
    """Return which words stand in ``text``: names as whole words, since "Neilsen" is no "ilse"."""
    seen = text.decode() if isinstance(text, bytes) else text
    return [
        word
        for word in words
        if (re.search(rf"(?<![^\W_]){word}(?![^\W\d_])", seen) if word.isalpha() else word in seen)
    ]


def policy_file(folder: Path, changes: Mapping[str, Any]) -> str:
    """Write the balanced policy with some fields replaced; return its path."""
    data = yaml.safe_load(BALANCED.read_text())
    for name, value in changes.items():
        inner = isinstance(value, dict) and isinstance(data.get(name), dict)
        data[name] = {**data[name], **value} if inner else value
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump({**data, "name": "changed"}))
    return str(path)


@contextmanager
def running_gateway(
    folder: Path,
    *,
    detector: Detector | None = None,
    policy: Mapping[str, Any] | None = None,
    models: Sequence[ModelEntry] = (),
    **settings: Any,
) -> Iterator[Gateway]:
    """Run a gateway before a recording upstream of its own."""
    quiet_libraries()
    services = build_services(Settings(data_dir=folder / "data", **settings))
    if detector is not None:
        services.detector = detector
    services.tenants.ensure("acme")
    key, _ = services.keys.create("client", "acme")
    with recording_upstream() as upstream:
        params = LiteLlmParams(
            model="openai/upstream-model", api_base=upstream.url, api_key="sk-upstream"
        )
        config = ServerConfig(
            model_list=[ModelEntry(model_name="test-model", litellm_params=params), *models],
            policy=policy_file(folder, policy) if policy else "",
        )
        pipeline = build_pipeline(services, config)
        app = create_app(services, pipeline)
        sock = socket.socket(proto=socket.IPPROTO_TCP)  # else asyncio leaves Nagle on
        sock.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        url = f"http://127.0.0.1:{sock.getsockname()[1]}/v1"
        running = Gateway(url, key, services, pipeline, upstream)
        yield running
        running.client().close()
        running.http.close()
        server.should_exit = True
        thread.join(15)
        sock.close()
    services.close()


class LogKeeper(logging.Handler):
    """Keeps what every thread but the test's own logs: there the clients of the test log, too."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self._formatter = logging.Formatter("%(levelname)s %(name)s %(message)s")

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread != threading.main_thread().ident:
            self.lines.append(f"{self._formatter.format(record)} {record.args!r}")

    def serious(self) -> list[str]:
        return [line for line in self.lines if line.startswith(("WARNING", "ERROR", "CRITICAL"))]


@contextmanager
def kept_log() -> Iterator[LogKeeper]:
    """Keep everything that is logged, down to DEBUG."""
    keeper = LogKeeper()
    root = logging.getLogger()
    before = root.level
    root.addHandler(keeper)
    root.setLevel(logging.DEBUG)
    try:
        yield keeper
    finally:
        root.setLevel(before)
        root.removeHandler(keeper)
