"""Where a choice of a streamed answer ends: told once, in every chunk, with usage, or not at all."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from connectors.base import UpstreamError
from gateway.respond import ChunkRestorer, restored_stream
from privacy.restoration import Pair, Restorer

SUBSTITUTE, ORIGINAL = "Daniele Hein", "Ilse Varga"
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def _chunk(text: str, finish: str | None = None, index: int = 0, **more: Any) -> dict[str, Any]:
    choice = {"index": index, "delta": {"content": text}, "finish_reason": finish}
    return {"id": "c", "choices": [choice], **more}


def _answer(chunks: list[dict[str, Any]], cut: bool = False) -> list[dict[str, Any]]:
    """Return the restored chunks; ``cut``: the upstream breaks off behind them."""

    async def upstream() -> AsyncIterator[dict[str, Any]]:
        for chunk in chunks:
            yield chunk
        if cut:
            raise UpstreamError("malformed")

    async def collect() -> list[dict[str, Any]]:
        restorer = ChunkRestorer(Restorer([Pair(SUBSTITUTE, ORIGINAL, "mention")]), "m")
        found = []
        try:
            async for chunk in restored_stream(upstream(), restorer):
                found.append(chunk)
        except UpstreamError:
            assert cut
        return found

    return asyncio.run(collect())


def _told(found: list[dict[str, Any]], index: int = 0) -> tuple[str, list[str]]:
    """Return the text of a choice and the finish reasons that it was given."""
    mine = [c for chunk in found for c in chunk["choices"] if c["index"] == index]
    text = "".join(c["delta"].get("content") or "" for c in mine)
    return text, [c["finish_reason"] for c in mine if c["finish_reason"]]


@pytest.mark.parametrize("cut", [1, 3, 7, 50])
@pytest.mark.parametrize("ends", ["each", "last", "apart", "none"])
def test_a_substitute_is_restored_wherever_the_end_is_told(ends: str, cut: int) -> None:
    text = f"Ask {SUBSTITUTE}"
    pieces = [text[i : i + cut] for i in range(0, len(text), cut)]
    chunks = [_chunk(piece, "stop" if ends == "each" else None) for piece in pieces]
    if ends == "last":
        chunks[-1] = _chunk(pieces[-1], "stop")
    elif ends == "apart":
        chunks.append(_chunk("", "stop"))
    found = _answer(chunks)
    assert _told(found) == (f"Ask {ORIGINAL}", [] if ends == "none" else ["stop"])
    if ends != "none":
        assert found[-1]["choices"][0]["finish_reason"] == "stop"


def test_the_last_reason_counts() -> None:
    found = _answer([_chunk("Ask ", "stop"), _chunk(SUBSTITUTE, "length")])
    assert _told(found) == (f"Ask {ORIGINAL}", ["length"])


@pytest.mark.parametrize("together", [True, False])
def test_usage_comes_at_the_end(together: bool) -> None:
    chunks = [_chunk(SUBSTITUTE[:4], "stop"), _chunk(SUBSTITUTE[4:], "stop")]
    if together:
        chunks[-1]["usage"] = USAGE
    else:
        chunks.append({"id": "c", "choices": [], "usage": USAGE})
    found = _answer(chunks)
    assert _told(found) == (ORIGINAL, ["stop"])
    assert [chunk for chunk in found if chunk.get("usage")] == [found[-1]]
    assert found[-1]["usage"] == USAGE


def test_an_empty_chunk_in_the_middle_ends_nothing() -> None:
    found = _answer(
        [_chunk(SUBSTITUTE[:4]), {"id": "c", "choices": []}, _chunk(SUBSTITUTE[4:], "stop")]
    )
    assert _told(found) == (ORIGINAL, ["stop"])


def test_choices_end_on_their_own() -> None:
    found = _answer(
        [
            _chunk(SUBSTITUTE[:4], index=0),
            _chunk(SUBSTITUTE, "stop", index=1),
            _chunk(SUBSTITUTE[4:], "length", index=0),
        ]
    )
    assert _told(found, 0) == (ORIGINAL, ["length"])
    assert _told(found, 1) == (ORIGINAL, ["stop"])


def test_what_ended_is_whole_though_the_upstream_breaks_off() -> None:
    chunks = [_chunk(f"Ask {SUBSTITUTE}", "stop"), _chunk("Also Dan", index=1)]
    found = _answer(chunks, cut=True)
    assert _told(found, 0) == (f"Ask {ORIGINAL}", ["stop"])
    assert _told(found, 1)[1] == []
