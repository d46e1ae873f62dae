"""The result of a run: the trained values only, as safetensors, put on a base model and off again."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
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


def exact_fingerprint(model: nn.Module, but: Iterable[str]) -> str:
    """SHA-256 over what each parameter and buffer that is not in ``but`` adds up to, bit by bit."""
    skipped = set(but)
    digest = hashlib.sha256()
    state: dict[str, Any] = dict(model.named_parameters())
    names = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    state |= {name: value for name, value in model.state_dict().items() if name not in names}
    for name, value in sorted(state.items()):
        if name in skipped or name.endswith("added_bias") or not isinstance(value, Tensor):
            continue
        # Whole numbers have one sum, in whatever order a device takes it.
        real = torch.view_as_real(value.detach()) if value.is_complex() else value.detach()
        bits = real.to(torch.float32).contiguous().view(torch.int32)
        digest.update(f"{name} {tuple(value.shape)} {int(bits.sum(dtype=torch.int64))}".encode())
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
        "exact_base": exact_fingerprint(model, tensors),
        "added": json.dumps(list(added)),
        "card": json.dumps(dict(card or {})),
    }
    write_atomically(path, save(tensors, metadata))


def read_card(path: Path) -> dict[str, Any]:
    """Facts of the run that made a delta.  Raises CheckpointError when the file is not one."""
    return _read(path).card


@dataclass(frozen=True, slots=True)
class _Delta:
    metadata: Mapping[str, str]
    added: list[str]
    card: dict[str, Any]
    values: dict[str, Tensor]


def _read(path: Path) -> _Delta:
    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
            values = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if metadata.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not a delta of format {FORMAT}")
    try:
        added, card = json.loads(metadata["added"]), json.loads(metadata["card"])
        known = isinstance(added, list) and isinstance(card, dict) and "base" in metadata
    except (KeyError, ValueError):
        known = False
    if not known:
        raise CheckpointError(f"{path} is damaged: its description cannot be read")
    return _Delta(metadata, [str(name) for name in added], card, values)


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
    delta = _read(path)
    values, added = delta.values, delta.added
    exact = delta.metadata.get("exact_base")  # deltas of older versions have none
    if fingerprint(model, values) != delta.metadata["base"] or (
        exact is not None and exact_fingerprint(model, values) != exact
    ):
        raise CheckpointError(f"{path} was trained on another base model")
    try:
        add_biases_to(model, added)
    except AttributeError:
        remove_biases(model)
        raise CheckpointError(f"the model lacks a layer that {path} adds a bias to") from None
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
