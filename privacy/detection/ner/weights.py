"""The tagger's weight files: where they are and how they are verified before use."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SHIPPED: Final = Path(__file__).parent / "weights"
MODEL_FILE: Final = "tagger.int8.onnx"
TOKENIZER_FILE: Final = "tokenizer.json"
MANIFEST_FILE: Final = "manifest.json"
FORMAT: Final = 1
_MEND: Final = "Reinstall the package, or export the weights again with learning.ner.export."


class WeightsError(RuntimeError):
    """The weight files are absent, damaged or of another format; the message says what to do."""


@dataclass(frozen=True)
class Weights:
    """Verified contents of a weight folder.

    Attributes:
        model: The ONNX graph, serialised.
        tokenizer: The text of ``tokenizer.json``.
        labels: BIOES labels in the order of the model's output columns.
        version: Version of the weights, for the records of what found an entity.
        outside_bias: Subtracted from the log-probability of "no entity" before decoding, in nats.
            Positive values trade precision for recall; fitted on validation data.
    """

    model: bytes
    tokenizer: str
    labels: tuple[str, ...]
    version: str
    outside_bias: float


def sha256(content: bytes) -> str:
    """Hexadecimal SHA-256 of ``content``."""
    return hashlib.sha256(content).hexdigest()


def read_weights(folder: Path | None = None) -> Weights:
    """Read a weight folder and verify every file against the manifest.

    Args:
        folder: Folder with manifest, model and tokenizer; None for the shipped one.

    Raises:
        WeightsError: A file is absent, its SHA-256 differs, or the manifest cannot be used.
    """
    folder = SHIPPED if folder is None else folder
    manifest = _manifest(folder)
    files = manifest["files"]
    model = _verified(folder / MODEL_FILE, files)
    tokenizer = _verified(folder / TOKENIZER_FILE, files)
    return Weights(
        model=model,
        tokenizer=tokenizer.decode("utf-8"),
        labels=tuple(manifest["labels"]),
        version=str(manifest["version"]),
        outside_bias=float(manifest["outside_bias"]),
    )


def _manifest(folder: Path) -> Mapping[str, Any]:
    path = folder / MANIFEST_FILE
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise WeightsError(
            f"No tagger weights at {folder}: {MANIFEST_FILE} is missing. {_MEND}"
        ) from error
    except ValueError as error:
        raise WeightsError(f"{path} is damaged: it is not valid JSON. {_MEND}") from error
    wanted = {"format", "version", "labels", "files", "outside_bias"}
    if not isinstance(manifest, dict) or not wanted <= manifest.keys():
        raise WeightsError(f"{path} is damaged: it lacks required entries. {_MEND}")
    if manifest["format"] != FORMAT:
        raise WeightsError(
            f"{path} has format {manifest['format']}, but this version reads format {FORMAT}."
            " Export the weights again with this version."
        )
    return manifest


def _verified(path: Path, files: Mapping[str, str]) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise WeightsError(f"The weight file {path} is missing. {_MEND}") from error
    if sha256(content) != files.get(path.name):
        raise WeightsError(
            f"The weight file {path} is damaged: its SHA-256 is not that of the manifest. {_MEND}"
        )
    return content
