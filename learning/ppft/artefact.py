"""A trained model on disk: projection and LoRA in one safetensors file, and what it belongs to."""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from learning.ppft.dataset import Meta
from learning.ppft.decoder import Decoder
from learning.ppft.model import Lora, PpftModel

VERSION: Final = 1
WEIGHTS: Final = "weights.safetensors"
CARD: Final = "card.json"


class ArtefactError(ValueError):
    """A trained model is missing, damaged, or belongs to another decoder."""


@dataclass(frozen=True, slots=True)
class Card:
    """What a trained model is.

    Attributes:
        encoder, dimensions, k: What its rows must come from.
        decoder: Name of the decoder that the weights sit on.
        stage: 1 or 2.
        steps: Optimiser steps over all stages.
        mechanism, epsilon: Noise of the rows it was adapted to; ``none`` and None after stage 1.
        corpora: Training data, by stage.
        lora: Settings of LoRA.
        task: What it was trained for last; empty where nobody said.
    """

    encoder: str
    dimensions: int
    k: int
    decoder: str
    stage: int = 1
    steps: int = 0
    mechanism: str = "none"
    epsilon: float | None = None
    corpora: tuple[str, ...] = ()
    lora: Lora = field(default_factory=Lora)
    task: str = ""

    def of(self, meta: Meta) -> "Card":
        """Return the card of the model after training on a dataset."""
        corpora = tuple(dict.fromkeys((*self.corpora, *meta.corpora)))
        return replace(self, mechanism=meta.mechanism, epsilon=meta.epsilon, corpora=corpora)

    def check(self, meta: Meta) -> None:
        """Raise ArtefactError when a dataset's rows are not of this model's kind."""
        own = (self.encoder, self.dimensions, self.k)
        if own != (meta.encoder, meta.dimensions, meta.k):
            raise ArtefactError(
                f"the dataset's rows ({meta.encoder}, {meta.dimensions} columns, k = {meta.k}) are "
                f"not the model's ({self.encoder}, {self.dimensions} columns, k = {self.k})"
            )


def save(model: PpftModel, card: Card, folder: Path) -> None:
    """Write a model, whole or not at all; weights in half precision."""
    from safetensors.torch import save

    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".model-", dir=folder.parent))
    try:
        tensors = {n: p.detach().half().cpu().contiguous() for n, p in model.trainable().items()}
        # The card stands in the weights too, so that one file is enough to use a model.
        (scratch / WEIGHTS).write_bytes(save(tensors, {"card": json.dumps(asdict(card))}))
        digest = _sha256(scratch / WEIGHTS)
        body = {"version": VERSION, "card": asdict(card), "sha256": digest}
        (scratch / CARD).write_text(json.dumps(body, indent=2) + "\n", "utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(scratch, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def read_card(folder: Path) -> Card:
    """Return what a model folder says it is.

    Raises:
        ArtefactError: No readable card of this version, or the weights are not the card's.
    """
    try:
        body: dict[str, Any] = json.loads((folder / CARD).read_text("utf-8"))
        card = dict(body["card"])
        if body["version"] != VERSION:
            raise ArtefactError(f"{folder} has version {body['version']}; this reads {VERSION}")
        if _sha256(folder / WEIGHTS) != body["sha256"]:
            raise ArtefactError(f"{folder} is damaged: its weights are not those of its card")
        return _card(card)
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, ArtefactError):
            raise
        raise ArtefactError(f"{folder} is no trained PPFT model") from None


def card_within(weights: Path) -> Card:
    """Return the card that a file of weights carries.

    Raises:
        ArtefactError: It carries none.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(weights, "pt") as handle:
            return _card(json.loads((handle.metadata() or {})["card"]))
    except (OSError, SafetensorError, ValueError, KeyError, TypeError):
        raise ArtefactError(f"{weights.name} is no trained PPFT model with a card") from None


def _card(card: dict[str, Any]) -> Card:
    lora = Lora(**{**card["lora"], "targets": tuple(card["lora"]["targets"])})
    return Card(**{**card, "corpora": tuple(card["corpora"]), "lora": lora})


def load(folder: Path, decoder: Decoder) -> tuple[PpftModel, Card]:
    """Put a trained projection and LoRA on a decoder.

    Raises:
        ArtefactError: Damaged, or trained on another decoder.
    """
    card = read_card(folder)
    return load_weights(folder / WEIGHTS, card, decoder), card


def load_weights(weights: Path, card: Card, decoder: Decoder) -> PpftModel:
    """Put weights that a card describes on a decoder.

    Raises:
        ArtefactError: Damaged, or trained on another decoder.
    """
    from safetensors.torch import load_file

    if card.decoder != decoder.name:
        raise ArtefactError(f"the model belongs to {card.decoder}, not to {decoder.name}")
    model = PpftModel.create(decoder, card.dimensions, card.lora)
    restore(model, load_file(weights))
    return model


def restore(model: PpftModel, tensors: dict[str, Any]) -> None:
    """Copy tensors by name into a model's trainable parameters.

    Raises:
        ArtefactError: Names or shapes differ.
    """
    import torch

    own = model.trainable()
    if own.keys() != tensors.keys():
        raise ArtefactError("the weights' names are not the model's: other LoRA settings?")
    with torch.no_grad():
        for name, parameter in own.items():
            if parameter.shape != tensors[name].shape:
                raise ArtefactError(f"{name} has shape {tuple(tensors[name].shape)}")
            parameter.copy_(tensors[name])


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
