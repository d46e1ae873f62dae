"""Base models that can be fine-tuned here: the shipped ones and the operator's folder."""

import re
from pathlib import Path
from typing import Final

from connectors.weights import (
    CHAT_MODEL,
    MINILM_CONFIG,
    MINILM_TOKENIZER,
    MINILM_WEIGHTS,
    WeightsError,
)

ENCODER: Final = "all-MiniLM-L6-v2"
WRITER: Final = "SmolLM2-135M-Instruct"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class UnknownBase(ValueError):
    """There is no such base model; the message says which there are."""


def base_names(models_dir: Path) -> list[str]:
    """Return the names of all base models."""
    found = [p.name for p in models_dir.glob("*") if (p / "config.json").is_file()]
    return [ENCODER, WRITER, *sorted(name for name in found if _NAME.fullmatch(name))]


def base_path(name: str, models_dir: Path) -> Path:
    """Return the folder, or the GGUF file, of a base model, verified where it is a shipped one.

    Raises:
        UnknownBase: There is none of that name, or its package is not installed.
    """
    try:
        if name == ENCODER:
            MINILM_CONFIG.verified()
            MINILM_TOKENIZER.verified()
            return MINILM_WEIGHTS.verified().parent
        if name == WRITER:
            return CHAT_MODEL.verified()
    except WeightsError as error:
        raise UnknownBase(str(error)) from None
    if name in base_names(models_dir):
        return (models_dir / name).resolve()
    raise UnknownBase(
        f"There is no such base model; there are: {', '.join(base_names(models_dir))}."
    )
