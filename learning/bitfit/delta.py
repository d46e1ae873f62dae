"""The result of a run: the trained values only, as safetensors, put on a base model and off again."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from learning.bitfit.added import add_biases_to, remove_biases
from learning.bitfit.errors import CheckpointError

FORMAT: Final = "penname-bitfit-1"
_SAMPLE: Final = 64


def fingerprint(model: nn.Module, but: Iterable[str]) -> str:
    """SHA-256 over names, shapes and a sample of the values of the parameters that are not in ``but``.

    The type is left out: the same model in another precision has another sample anyway.
    """
    skipped = set(but)
    digest = hashlib.sha256()
    for name, parameter in sorted(model.named_parameters()):
        if name in skipped or name.endswith("added_bias"):
            continue
        sample = parameter.detach().reshape(-1)[:_SAMPLE].to("cpu", torch.float32)
        digest.update(f"{name} {tuple(parameter.shape)}".encode())
        digest.update(sample.contiguous().numpy().tobytes())
    return digest.hexdigest()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file that is there wholly or not at all, also after a power cut."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def save_delta(
    path: Path,
    model: nn.Module,
    values: Mapping[str, Tensor],
    added: Iterable[str] = (),
    card: Mapping[str, Any] | None = None,
) -> None:
    """Write the trained values.

    Args:
        path: File to write, ``.safetensors``.
        model: The model they were trained in; only its fingerprint is stored.
        values: Name to trained value. Values, not differences: putting them on is exact.
        added: Layers that got an added bias.
        card: Facts of the run, stored beside the values.
    """
    tensors = {name: value.detach().to("cpu").contiguous() for name, value in values.items()}
    metadata = {
        "format": FORMAT,
        "base": fingerprint(model, tensors),
        "added": json.dumps(list(added)),
        "card": json.dumps(dict(card or {})),
    }
    write_atomically(path, save(tensors, metadata))


def read_card(path: Path) -> dict[str, Any]:
    """Facts of the run that made a delta.  Raises CheckpointError when the file is not one."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a delta of format {FORMAT}")
    card: dict[str, Any] = json.loads(metadata["card"])
    return card


@dataclass(slots=True)
class Applied:
    """A delta on a model."""

    model: nn.Module
    names: list[str]
    _before: dict[str, Tensor]
    _added: bool

    def remove(self) -> None:
        """Give the base back, bit for bit."""
        with torch.no_grad():
            for name, value in self._before.items():
                self.model.get_parameter(name).copy_(value)
        if self._added:
            remove_biases(self.model)
        self._before.clear()


def apply_delta(model: nn.Module, path: Path) -> Applied:
    """Put a delta on its base model, in place.

    Args:
        model: The base, with a head of the right shape where one was trained.
        path: What `save_delta` wrote.

    Returns:
        A handle whose ``remove`` restores the base bit for bit.

    Raises:
        CheckpointError: Another file, or another base model.
    """
    read_card(path)
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        values = {name: file.get_tensor(name) for name in file.keys()}
    added: list[str] = json.loads(metadata["added"])
    if fingerprint(model, values) != metadata["base"]:
        raise CheckpointError(f"{path} was trained on another base model")
    add_biases_to(model, added)
    parameters = dict(model.named_parameters())
    for name, value in values.items():
        if name not in parameters or parameters[name].shape != value.shape:
            remove_biases(model)
            raise CheckpointError(
                f"the model has no parameter {name} of shape {tuple(value.shape)}"
            )
    before = {n: parameters[n].detach().clone() for n in values if not n.endswith("added_bias")}
    with torch.no_grad():
        for name, value in values.items():
            parameters[name].copy_(value)
    return Applied(model, list(values), before, bool(added))
