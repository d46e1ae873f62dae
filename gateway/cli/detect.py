"""`penname detect`: JSON lines in, JSON lines out, for files of any size."""

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from gateway.bootstrap import build_detector
from gateway.cli.console import CommandError, complain
from gateway.settings import Settings
from privacy.types import Span


def run(file: Path | None, batch: int) -> None:
    """Read lines, write one line for each, in order; a faulty line gets an error of its own."""
    detector = build_detector(Settings())
    faults = 0
    with _source(file) as lines:
        for group in _batches(enumerate(lines, 1), batch):
            parsed = [(number, *_text(line)) for number, line in group]
            texts = [text for _, text, _ in parsed if text is not None]
            found = iter(detector.detect(texts))
            for number, text, error in parsed:
                if text is None:
                    faults += 1
                    complain(f"line {number}: {error}")
                    _write({"error": {"line": number, "message": error}})
                else:
                    _write({"spans": [span_json(span) for span in next(found)]})
            sys.stdout.buffer.flush()
    if faults:
        raise SystemExit(1)


def span_json(span: Span) -> dict[str, Any]:
    """Return a span as the command line shows it; offsets are code points."""
    return {
        "start": span.start,
        "end": span.end,
        "type": span.type,
        "score": round(span.score, 4),
        "recognizer": span.recognizer,
    }


def _source(file: Path | None) -> Any:
    if file is None:
        return sys.stdin.buffer
    try:
        return file.open("rb")
    except OSError as error:
        raise CommandError(f"{file}: cannot be read ({error.strerror})") from None


def _batches(lines: Iterable[tuple[int, bytes]], size: int) -> Iterator[list[tuple[int, bytes]]]:
    iterator = ((number, line) for number, line in lines if line.strip())
    while group := list(islice(iterator, size)):
        yield group


def _text(line: bytes) -> tuple[str | None, str]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None, "is not JSON in UTF-8"
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        return None, 'needs an object with a string "text"'
    return value["text"], ""


def _write(value: object) -> None:
    sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
