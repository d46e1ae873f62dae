"""Base models that can be fine-tuned here: the shipped ones and the operator's folder; and what PPFT
models among them sit on."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Final

from connectors.token_encoder import MINILM, token_encoder
from connectors.weights import (
    CHAT_MODEL,
    MINILM_CONFIG,
    MINILM_TOKENIZER,
    MINILM_WEIGHTS,
    WeightsError,
    cache_folder,
)
from learning.methods.base import MethodError
from learning.ppft.shipped import INTENT
from privacy.ppft.encoder import TokenEncoder

ENCODER: Final = "all-MiniLM-L6-v2"
WRITER: Final = "SmolLM2-135M-Instruct"
PPFT_INTENT: Final = "ppft-intent"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class UnknownBase(ValueError):
    """There is no such base model; the message says which there are."""


def base_names(models_dir: Path) -> list[str]:
    """Return the names of all base models."""
    # A folder with config.json is transformers', one with card.json a PPFT model.
    found = {
        p.parent.name for name in ("config", "card") for p in models_dir.glob(f"*/{name}.json")
    }
    return [ENCODER, WRITER, PPFT_INTENT, *sorted(name for name in found if _NAME.fullmatch(name))]


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
    if name == PPFT_INTENT:
        return INTENT
    if name in base_names(models_dir):
        return (models_dir / name).resolve()
    raise UnknownBase(
        f"There is no such base model; there are: {', '.join(base_names(models_dir))}."
    )


class LocalSite:
    """Encoders and decoders in this process; see `learning.methods.base.Site`.

    Args:
        models_dir: Folder of the operator's models.
    """

    def __init__(self, models_dir: Path) -> None:
        self._models_dir = models_dir

    def encoder(self, name: str) -> TokenEncoder:
        """Return ``minilm``, or an encoder among the operator's models."""
        if name == MINILM or name.partition("@")[0] == ENCODER:
            encoder = _encoder(MINILM)
            if "@" in name and encoder.name != name:
                raise MethodError(f"the encoder is {encoder.name} here, not {name}", "encoder")
            return encoder
        return _encoder(str(self._folder(name, "encoder")))

    def decoder(self, name: str) -> Path:
        """Return the folder of a decoder; the shipped one is converted at its first use."""
        if not name.startswith(WRITER):
            return self._folder(name, "decoder")
        from learning.ppft.decoder import DecoderError, convert_gguf

        try:
            gguf = CHAT_MODEL.verified()
            found = convert_gguf(gguf, cache_folder(), CHAT_MODEL.sha256)
        except (WeightsError, DecoderError) as error:
            raise MethodError(str(error)) from None
        if name not in (gguf.stem, found.name):
            raise MethodError(f"the decoder is {found.name} here, not {name}")
        return found

    def _folder(self, name: str, what: str) -> Path:
        folder = self._models_dir / name
        if not _NAME.fullmatch(name) or not (folder / "config.json").is_file():
            raise MethodError(
                f"there is no {what} {name!r} in PENNAME_MODELS_DIR; put its Hugging Face folder there",
                what,
            )
        return folder.resolve()


@lru_cache(4)
def _encoder(name_or_path: str) -> TokenEncoder:
    return token_encoder(name_or_path)
