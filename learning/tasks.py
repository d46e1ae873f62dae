"""What a base model is tuned to do: an encoder classifies, a causal model writes.

A base is a folder in the layout of Hugging Face (``config.json``, ``tokenizer.json``,
``model.safetensors``) or a GGUF file of a causal model.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from learning.methods.base import MethodError, Tuned
from learning.rows import Rows

if TYPE_CHECKING:
    from torch import nn

    from learning.bitfit.data import Data
    from learning.bitfit.losses import Loss

_WRITES: Final = ("ForCausalLM", "GPT2LMHeadModel")


@dataclass
class Prepared:
    """A model and data that a trainer can take.

    Attributes:
        exclude: Shell patterns of parameters that stay frozen.
    """

    model: "nn.Module"
    data: "Data"
    loss: "Loss"
    exclude: tuple[str, ...] = ()


class Task(Protocol):
    """One use of a base model."""

    def prepare(
        self, base: Path, rows: Rows, labels: tuple[str, ...], max_length: int
    ) -> Prepared: ...

    def evaluate(
        self, prepared: Prepared, base: Path, rows: Rows, labels: tuple[str, ...], max_length: int
    ) -> Mapping[str, float]:
        """Return metrics on public rows."""

    def load(self, package: Path, base: Path) -> Tuned: ...


def config_of(base: Path) -> Mapping[str, Any]:
    """Return the base's ``config.json``; empty for a GGUF file.  Raises MethodError."""
    if base.suffix == ".gguf":
        return {}
    try:
        loaded = json.loads((base / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        loaded = None
    if not isinstance(loaded, dict):
        raise MethodError("its config.json is damaged; put the model's folder there anew")
    return loaded


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Turn a library's complaints about a part of the base into a MethodError that says what to do."""
    from torch import OutOfMemoryError

    try:
        yield
    except (MemoryError, OutOfMemoryError):
        raise  # no fault of the files, and perhaps over at the next try
    except Exception as error:
        raise MethodError(
            f"the base model's {what} cannot be loaded ({type(error).__name__}); its files are damaged "
            "or of a kind that this version of transformers does not know: put them there anew"
        ) from error


def is_causal(base: Path) -> bool:
    """Does the base write text?"""
    names = config_of(base).get("architectures")
    if not isinstance(names, list):
        names = []
    return base.suffix == ".gguf" or any(str(name).endswith(_WRITES) for name in names)


def task_of(base: Path) -> Task:
    """Return the task of a base."""
    if is_causal(base):
        from learning.causal import Writing

        return Writing()
    from learning.classifier import Classification

    return Classification()
