"""The local chat model: llama.cpp in this process, on the CPU, so that no key is needed."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson

from connectors.base import UpstreamError

_CONTEXT = 4096
# A model this small seldom ends by itself: without a bound it repeats itself to the end of the context.
_MOST_TOKENS = 512
_SLOTS = 2
_DROPPED = ("model", "user", "metadata", "store", "service_tier", "stream_options")


class LocalModel:
    """SmolLM2 or any other GGUF file through xllamacpp.

    Generation runs in threads of its own, so the event loop never waits for a token. The model sees
    the system prompt and the latest turn only: at 135 M parameters it repeats its earlier answers when
    it is shown them.

    Args:
        path: Returns the verified GGUF file; called at first use.
        name: Model name that answers carry.
        threads: CPU threads per generation.
    """

    sees_text = True

    def __init__(self, path: Callable[[], Path], name: str = "local", threads: int = 1) -> None:
        self._path = path
        self._name = name
        self._threads = threads
        self._lock = threading.Lock()
        self._server: Any = None
        self._pool = ThreadPoolExecutor(_SLOTS, thread_name_prefix="local-model")

    async def complete(self, payload: bytes) -> dict[str, Any]:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        await self._generate(payload, False, queue, threading.Event())
        result = await queue.get()
        if isinstance(result, UpstreamError):
            raise result
        if result is None:
            raise UpstreamError("failed")
        return self._named(result)

    async def stream(self, payload: bytes) -> AsyncGenerator[dict[str, Any], None]:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        stopped = threading.Event()
        task = asyncio.ensure_future(self._generate(payload, True, queue, stopped))
        try:
            while (chunk := await queue.get()) is not None:
                if isinstance(chunk, UpstreamError):
                    raise chunk
                yield self._named(chunk)
            await task
        finally:
            stopped.set()
            await asyncio.wait([task])

    async def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._server = None

    async def _generate(
        self, payload: bytes, stream: bool, queue: "asyncio.Queue[Any]", stopped: threading.Event
    ) -> None:
        loop = asyncio.get_running_loop()

        def put(item: Any) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, item)

        def receive(raw: str) -> bool:
            chunk = orjson.loads(raw)
            for item in chunk if isinstance(chunk, list) else [chunk]:
                put(_refusal(item) if "error" in item or "code" in item else item)
            return stopped.is_set()

        def work() -> None:
            try:
                body = {k: v for k, v in orjson.loads(payload).items() if k not in _DROPPED}
                body["stream"] = stream
                body["messages"] = latest_turn(body["messages"])
                body.setdefault("temperature", 0)
                if body.get("max_tokens") is None and body.get("max_completion_tokens") is None:
                    body["max_tokens"] = _MOST_TOKENS
                self._loaded().handle_chat_completions(orjson.dumps(body).decode(), receive)
            except ValueError:
                put(_refusal({}))
            except (RuntimeError, OSError):
                put(UpstreamError("failed"))
            finally:
                put(None)

        await loop.run_in_executor(self._pool, work)

    def _loaded(self) -> Any:
        with self._lock:
            if self._server is None:
                import xllamacpp

                params = xllamacpp.CommonParams()
                params.model.path = str(self._path())
                params.n_ctx = _CONTEXT * _SLOTS
                params.n_parallel = _SLOTS
                params.warmup = False
                params.verbosity = -1
                params.cpuparams.n_threads = self._threads
                params.cpuparams_batch.n_threads = self._threads
                self._server = xllamacpp.Server(params)
            return self._server

    def _named(self, chunk: dict[str, Any]) -> dict[str, Any]:
        # The engine writes the file's path as the model and adds its own timings.
        chunk.pop("timings", None)
        chunk["model"] = self._name
        return chunk


def _refusal(answer: dict[str, Any]) -> UpstreamError:
    """Tell what llama.cpp refuses in words of our own: its messages quote the request."""
    if (answer.get("error") or answer).get("type") == "exceed_context_size_error":
        return UpstreamError(
            "rejected", 400, reason=f"The local model reads at most {_CONTEXT:,} tokens; send less."
        )
    return UpstreamError(
        "rejected",
        400,
        reason="The local model can not honour a field of this request, such as n above "
        f"{_SLOTS} or a schema that is none.",
    )


def latest_turn(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the system messages and everything from the last user message on.

    Without a system message an empty one is added: the chat template would else add a prompt of its
    own, which nobody asked for.
    """
    last = max((i for i, m in enumerate(messages) if m.get("role") == "user"), default=0)
    system = [m for m in messages[:last] if m.get("role") in ("system", "developer")]
    return [*(system or [{"role": "system", "content": ""}]), *messages[last:]]
