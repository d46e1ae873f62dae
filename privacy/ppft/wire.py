"""The payload: safetensors bytes of closed names, numbers only, one canonical form.

Version 1 holds exactly these tensors: ``rows`` (m, d) as I8 or F16, and one-element ``version`` U16,
``task`` U8, ``k`` U8, ``max_tokens`` U16, ``temperature`` F32, ``stream`` U8, ``timestamp`` I64
(milliseconds since the epoch) and ``nonce`` U8 of 16.  There is no field for text; metadata, other names
and any byte that another encoding of the same numbers would not have are refused, so nothing can ride
along.  For a given d and type of rows the length depends on m alone.
"""

import json
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from privacy.ppft.tasks import Task

VERSION: Final = 1
MEDIA_TYPE: Final = "application/vnd.penname.ppft"
NONCE_BYTES: Final = 16
MOST_TOKENS: Final = 1024
_HEADER_LIMIT: Final = 4096
_PEAK: Final = 127
_SCALARS: Final[dict[str, Any]] = {
    "version": np.uint16,
    "task": np.uint8,
    "k": np.uint8,
    "max_tokens": np.uint16,
    "temperature": np.float32,
    "stream": np.uint8,
    "timestamp": np.int64,
}
RowType = Literal["int8", "float16"]


class WireError(ValueError):
    """A payload is refused.

    Attributes:
        code: Machine-readable reason.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Payload:
    """One request.

    Attributes:
        rows: float32 (m, d), unit rows.
        task: What is asked.
        k: Pooling window that made the rows.
        max_tokens: Longest answer.
        temperature: 0 for greedy.
        stream: Whether the answer comes in parts.
        timestamp: Milliseconds since the epoch.
        nonce: 16 random bytes.
    """

    rows: NDArray[np.float32]
    task: Task
    k: int
    max_tokens: int
    temperature: float
    stream: bool
    timestamp: int
    nonce: bytes


def pack(payload: Payload, row_type: RowType = "int8") -> bytes:
    """Return the bytes that leave.

    As I8 each row is scaled to a peak of 127: its direction is what counts, and rounding it is
    post-processing of the noised row.
    """
    rows = _quantised(payload.rows) if row_type == "int8" else payload.rows.astype(np.float16)
    return _canonical(
        {
            "rows": rows,
            "nonce": np.frombuffer(payload.nonce, dtype=np.uint8),
            **{
                name: np.array([value], dtype=_SCALARS[name])
                for name, value in (
                    ("version", VERSION),
                    ("task", int(payload.task)),
                    ("k", payload.k),
                    ("max_tokens", payload.max_tokens),
                    ("temperature", payload.temperature),
                    ("stream", int(payload.stream)),
                    ("timestamp", payload.timestamp),
                )
            },
        }
    )


def unpack(body: bytes, *, dimensions: int, k: int, most_slots: int) -> Payload:
    """Read and check a payload.

    Args:
        body: As received.
        dimensions, k: What the model was made for.
        most_slots: Largest m accepted.

    Raises:
        WireError: It is truncated, of another version or shape, not finite, or not canonical.
    """
    tensors = _tensors(body)
    scalars = {name: tensors[name][0].item() for name in _SCALARS}
    rows = _rows(tensors["rows"], dimensions, most_slots)
    if scalars["k"] != k:
        raise WireError("wrong_window", f"the model pools {k} tokens a row, not {scalars['k']}")
    if scalars["task"] not in set(Task):
        raise WireError("unknown_task", f"there is no task {scalars['task']}")
    if not 1 <= scalars["max_tokens"] <= MOST_TOKENS:
        raise WireError("bad_max_tokens", f"max_tokens must be between 1 and {MOST_TOKENS}")
    if not 0.0 <= scalars["temperature"] <= 2.0:  # refuses NaN too
        raise WireError("bad_temperature", "temperature must be between 0 and 2")
    if scalars["stream"] > 1:
        raise WireError("bad_stream", "stream must be 0 or 1")
    return Payload(
        rows,
        Task(scalars["task"]),
        k,
        scalars["max_tokens"],
        scalars["temperature"],
        bool(scalars["stream"]),
        scalars["timestamp"],
        tensors["nonce"].tobytes(),
    )


def size_limit(dimensions: int, most_slots: int) -> int:
    """Most bytes that a valid payload can have."""
    return 8 + _HEADER_LIMIT + 64 + 2 * dimensions * most_slots


def _canonical(tensors: dict[str, NDArray[Any]]) -> bytes:
    return bytes(save({name: tensors[name] for name in sorted(tensors)}))


def _tensors(body: bytes) -> dict[str, NDArray[Any]]:
    _check_header(body)
    try:
        tensors: dict[str, NDArray[Any]] = load(body)
    except (SafetensorError, ValueError, KeyError, TypeError):
        raise WireError("damaged_body", "the body is truncated or damaged: send it again") from None
    version = tensors["version"]
    if version.dtype != np.uint16 or version.shape != (1,) or int(version[0]) != VERSION:
        raise WireError("wrong_version", f"this server speaks version {VERSION} of the schema")
    for name, kind in _SCALARS.items():
        if tensors[name].dtype != kind or tensors[name].shape != (1,):
            raise WireError("bad_field", f"{name} must be one {np.dtype(kind).name}")
    nonce = tensors["nonce"]
    if nonce.dtype != np.uint8 or nonce.shape != (NONCE_BYTES,):
        raise WireError("bad_field", f"nonce must be {NONCE_BYTES} bytes")
    if _canonical(tensors) != body:
        raise WireError("not_canonical", "the body is not the canonical form of its numbers")
    return tensors


def _check_header(body: bytes) -> None:
    """Refuse what is no safetensors, before its parser sees it, and every name that is not ours."""
    length = int.from_bytes(body[:8], "little") if len(body) >= 8 else 0
    if not 2 <= length <= _HEADER_LIMIT:
        raise WireError("not_tensors", "only tensors are accepted here, never text")
    if len(body) < 8 + length:
        raise WireError("damaged_body", "the body is truncated or damaged: send it again")
    try:
        header = json.loads(body[8 : 8 + length])
    except ValueError:
        raise WireError("not_tensors", "only tensors are accepted here, never text") from None
    expected = {"rows", "nonce", *_SCALARS}
    if not isinstance(header, dict) or set(header) != expected:
        raise WireError(
            "bad_field",
            f"the body must hold exactly {', '.join(sorted(expected))}, and no metadata",
        )


def _rows(found: NDArray[Any], dimensions: int, most_slots: int) -> NDArray[np.float32]:
    if found.dtype not in (np.int8, np.float16):
        raise WireError("bad_rows", "rows must be I8 or F16")
    if found.ndim != 2 or found.shape[1] != dimensions:
        raise WireError("wrong_dimension", f"rows must have {dimensions} columns")
    if not 1 <= len(found) <= most_slots:
        raise WireError("too_many_slots", f"between 1 and {most_slots} rows are accepted")
    rows = found.astype(np.float32)
    if not np.isfinite(rows).all():
        raise WireError("not_finite", "rows must not hold NaN or infinity")
    if found.dtype == np.int8 and not (np.abs(rows).max(axis=1) == _PEAK).all():
        raise WireError("bad_rows", f"I8 rows must peak at {_PEAK}")
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if found.dtype == np.float16 and not (np.abs(norms - 1.0) < 0.01).all():
        raise WireError("bad_rows", "F16 rows must have norm 1")
    return np.asarray(rows / norms, dtype=np.float32)


def _quantised(rows: NDArray[np.float32]) -> NDArray[np.int8]:
    peak = np.maximum(np.abs(rows).max(axis=1, keepdims=True), 1e-12)
    return np.asarray(np.rint(rows / peak * _PEAK), dtype=np.int8)
