"""The causal decoder: from a transformers folder or name, or converted once from a GGUF file.

A GGUF of SmolLM2 names its tokenizer only in metadata; the byte-level BPE is built from it here,
with single digits as the model was trained.
"""

import importlib.util
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_CONTROL: Final = 3  # GGUF's token type of special tokens
_CONVERTED: Final = "ppft-decoder-1"  # the last number grows when the conversion changes


class DecoderError(ValueError):
    """A decoder can not be read; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Decoder:
    """A causal language model with its tokenizer.

    Attributes:
        model: transformers' ``...ForCausalLM``, evaluation mode.
        tokenizer: A ``tokenizers.Tokenizer``.
        bos, eos: Ids around a sequence.
        name: Name without folders; adapters are bound to it.
    """

    model: Any
    tokenizer: Any
    bos: int
    eos: int
    name: str

    def ids(self, text: str) -> list[int]:
        """Token ids of a text, nothing added."""
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def text(self, ids: Sequence[int]) -> str:
        """Text of token ids, special tokens left out."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))


def load_decoder(source: str | Path, device: str = "cpu", dtype: str = "float32") -> Decoder:
    """Load a decoder.

    Args:
        source: A folder or hub name of transformers' format.
        device: As torch names it.
        dtype: ``float32`` or ``bfloat16``.

    Raises:
        DecoderError: It cannot be loaded, or its tokenizer has no fast form.
    """
    import torch
    from transformers import AutoModelForCausalLM

    try:
        model = AutoModelForCausalLM.from_pretrained(str(source), dtype=getattr(torch, dtype))
    except (OSError, ValueError) as error:
        raise DecoderError(f"the decoder {source} can not be loaded: {error}") from None
    tokenizer, bos, eos = _tokenizer(str(source), model.config)
    name = os.path.basename(os.path.normpath(str(source)))
    return Decoder(model.to(device).eval(), tokenizer, bos, eos, name)


def convert_gguf(gguf: Path, cache: Path, digest: str) -> Path:
    """Return the transformers form of a GGUF file, made once (about half a minute).

    Args:
        gguf: A file whose SHA-256 the caller has verified.
        cache: Folder of converted models.
        digest: The file's SHA-256; part of the folder's name.

    Raises:
        DecoderError: The architecture's tokenizer is none that can be rebuilt.
    """
    target = cache / _CONVERTED / f"{gguf.stem}-{digest[:12]}"
    if (target / "config.json").is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".convert-", dir=target.parent))
    try:
        _convert(gguf, scratch)
        try:
            os.replace(scratch, target)
        except OSError:
            if not (target / "config.json").is_file():  # another process was not faster
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _convert(gguf: Path, folder: Path) -> None:
    if importlib.util.find_spec("gguf") is None:
        raise DecoderError(
            "reading GGUF needs one more package: pip install -c constraints.txt -e '.[finetune]'"
        )
    import torch
    from transformers import AutoModelForCausalLM
    from transformers import logging as hf_logging

    hf_logging.disable_progress_bar()
    logging.getLogger("transformers").setLevel(logging.ERROR)
    model = AutoModelForCausalLM.from_pretrained(
        str(gguf.parent), gguf_file=gguf.name, dtype=torch.float32
    )
    fields = _metadata(gguf)
    tokenizer = _byte_level_bpe(fields)
    # Four-bit weights have no more digits than half precision keeps.
    model.half().save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {"bos": fields["bos_token_id"], "eos": fields["eos_token_id"]}
    if "<|im_end|>" in fields["tokens"]:
        special = {
            "bos": fields["tokens"].index("<|im_start|>"),
            "eos": fields["tokens"].index("<|im_end|>"),
        }
    (folder / "special.json").write_text(json.dumps(special), "utf-8")


def _metadata(gguf: Path) -> dict[str, Any]:
    from gguf import GGUFReader

    reader = GGUFReader(str(gguf))
    names = ("tokens", "token_type", "merges", "model", "pre", "bos_token_id", "eos_token_id")
    found = {name: reader.get_field(f"tokenizer.ggml.{name}") for name in names}
    fields = {name: field.contents() for name, field in found.items() if field is not None}
    if fields.get("model") != "gpt2" or fields.get("pre") != "smollm":
        raise DecoderError(
            f"{gguf.name}: only GGUF files with SmolLM2's tokenizer are converted; "
            "give other models as a transformers folder"
        )
    return fields


def _byte_level_bpe(fields: dict[str, Any]) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens: list[str] = fields["tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in fields["merges"]]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = zip(tokens, fields["token_type"], strict=True)
    tokenizer.add_special_tokens(
        [AddedToken(t, special=True, normalized=False) for t, kind in kinds if kind == _CONTROL]
    )
    return tokenizer


def _tokenizer(source: str, config: Any) -> tuple[Any, int, int]:
    special = Path(source, "special.json")
    if special.is_file():
        from tokenizers import Tokenizer

        ids = json.loads(special.read_text("utf-8"))
        return Tokenizer.from_file(str(Path(source, "tokenizer.json"))), ids["bos"], ids["eos"]
    from transformers import AutoTokenizer

    loaded = AutoTokenizer.from_pretrained(source)
    fast = getattr(loaded, "backend_tokenizer", None)
    eos = loaded.eos_token_id if loaded.eos_token_id is not None else config.eos_token_id
    if fast is None or eos is None:
        raise DecoderError(f"{source} has no fast tokenizer with an end-of-sequence token")
    bos = loaded.bos_token_id if loaded.bos_token_id is not None else eos
    return fast, int(bos), int(eos)
