"""Datasets of rows and answers: what the customer exports and all that the server trains from.

A dataset is a folder, written whole or not at all: ``manifest.json``, ``rows.safetensors`` and
``answers.jsonl``.  A *public* dataset (never noised, of public corpora) adds ``windows.jsonl``, the text
under each row, from which the projection is initialised; an exported private one has no text but its
answers.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from privacy.ppft.tasks import Task

if TYPE_CHECKING:
    from learning.ppft.model import Example

VERSION: Final = 1
_FILES: Final = ("rows.safetensors", "answers.jsonl", "windows.jsonl")


class DatasetError(ValueError):
    """A dataset is damaged, of another version, or does not fit the model."""


@dataclass(frozen=True, slots=True)
class Meta:
    """How the rows were made.

    Attributes:
        encoder: Name of the encoder.
        dimensions: Length of a row.
        k: Pooling window.
        mechanism, epsilon: The noise; ``none`` and None for clean rows.
        public: The rows come from public text and are not noised.
        corpora: Where the records come from.
    """

    encoder: str
    dimensions: int
    k: int
    mechanism: str = "none"
    epsilon: float | None = None
    public: bool = False
    corpora: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowData:
    """Records as rows.

    Attributes:
        meta: How they were made.
        rows: One float32 (slots, dimensions) array a record.
        tasks: One task a record.
        answers: One answer a record.
        windows: The text under each row, for public data only.
    """

    meta: Meta
    rows: list[NDArray[np.float32]]
    tasks: list[Task]
    answers: list[str]
    windows: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not len(self.rows) == len(self.tasks) == len(self.answers):
            raise DatasetError("a dataset needs one task and one answer a record")

    def __len__(self) -> int:
        return len(self.rows)

    def examples(self) -> "list[Example]":
        """Return the records as the model takes them."""
        from learning.ppft.model import Example

        return [Example(*item) for item in zip(self.rows, self.tasks, self.answers, strict=True)]


def save(data: RowData, folder: Path) -> None:
    """Write a dataset; an earlier one of this name is replaced.

    Raises:
        DatasetError: A noised dataset carries windows of text.
    """
    if data.windows and not data.meta.public:
        raise DatasetError("only public datasets may carry the text of their windows")
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".dataset-", dir=folder.parent))
    try:
        _write(data, scratch)
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def load(folder: Path) -> RowData:
    """Read a dataset and check its hashes.

    Raises:
        DatasetError: Missing, damaged or of another version.
    """
    from safetensors.numpy import load_file

    try:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    except (OSError, ValueError):
        raise DatasetError(f"{folder} is no dataset: it has no readable manifest.json") from None
    if manifest.get("version") != VERSION:
        raise DatasetError(f"{folder} has version {manifest.get('version')}; this reads {VERSION}")
    for name, digest in manifest["sha256"].items():
        if name not in _FILES or not (folder / name).is_file() or _sha256(folder / name) != digest:
            raise DatasetError(f"{folder / name} is missing or damaged: export the dataset again")
    meta = Meta(**{**manifest["meta"], "corpora": tuple(manifest["meta"]["corpora"])})
    tensors = load_file(folder / "rows.safetensors")
    cuts = tensors["starts"]
    rows = tensors["rows"].astype(np.float32)
    return RowData(
        meta,
        [rows[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)],
        [Task(int(task)) for task in tensors["tasks"]],
        _read_lines(folder / "answers.jsonl"),
        _read_lines(folder / "windows.jsonl") if meta.public else [],
    )


def merge(parts: Sequence[RowData]) -> RowData:
    """Return one dataset of several with the same encoder, window and noise.

    Raises:
        DatasetError: They differ, or there is none.
    """
    if not parts:
        raise DatasetError("no dataset was given")
    first = parts[0].meta
    for part in parts[1:]:
        if _kind(part.meta) != _kind(first):
            raise DatasetError("datasets of different encoders, windows or noise do not mix")
    corpora = tuple(dict.fromkeys(name for part in parts for name in part.meta.corpora))
    public = all(part.meta.public for part in parts)
    meta = Meta(**{**asdict(first), "corpora": corpora, "public": public})
    return RowData(
        meta,
        [row for part in parts for row in part.rows],
        [task for part in parts for task in part.tasks],
        [answer for part in parts for answer in part.answers],
        [window for part in parts for window in part.windows] if public else [],
    )


def _kind(meta: Meta) -> tuple[Any, ...]:
    return (meta.encoder, meta.dimensions, meta.k, meta.mechanism, meta.epsilon)


def _write(data: RowData, folder: Path) -> None:
    from safetensors.numpy import save

    lengths = [len(rows) for rows in data.rows]
    empty = np.zeros((0, data.meta.dimensions), np.float16)
    tensors: dict[str, NDArray[Any]] = {
        "rows": np.concatenate([empty, *data.rows]).astype(np.float16),
        "starts": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        "tasks": np.array([int(task) for task in data.tasks], dtype=np.uint8),
    }
    (folder / "rows.safetensors").write_bytes(save(tensors))
    _write_lines(folder / "answers.jsonl", data.answers)
    if data.windows:
        _write_lines(folder / "windows.jsonl", data.windows)
    hashes = {name: _sha256(folder / name) for name in _FILES if (folder / name).exists()}
    manifest = {"version": VERSION, "meta": asdict(data.meta), "sha256": hashes}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")


def _write_lines(path: Path, values: Sequence[Any]) -> None:
    path.write_text("".join(json.dumps(v, ensure_ascii=False) + "\n" for v in values), "utf-8")


def _read_lines(path: Path) -> list[Any]:
    # Not splitlines: a text may hold other line separators.
    with open(path, encoding="utf-8", newline="\n") as handle:
        return [json.loads(line) for line in handle]


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
