"""Sentence encoders: texts in, unit vectors out.

`MiniLmEncoder` runs all-MiniLM-L6-v2 on onnxruntime and tokenizers only: mean of the token states
over real tokens, then unit norm, as its authors publish it.  Texts longer than the model's 256
tokens are read in overlapping windows, so nothing is cut off.
"""

import os
import threading
from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from connectors.weights import Progress, embedder_onnx, embedder_tokenizer
from privacy.onnx import onnx_session

_TOKENS: Final = 256  # the published max_seq_length, with [CLS] and [SEP]
_OVERLAP: Final = 32
_BATCH: Final = 16


class Encoder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def dimensions(self) -> int:
        """Length of the vectors."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32 of shape (len(texts), dimensions); every row has unit length."""


class MiniLmEncoder:
    """all-MiniLM-L6-v2, 384 dimensions, fp32.  Safe to call from several threads."""

    dimensions: int = 384

    def __init__(self, threads: int = 1, progress: Progress | None = None) -> None:
        """Load the model; the first time ever it is converted first, which takes some seconds.

        Args:
            threads: Threads inside one run of the model.
            progress: Told in words what takes long.

        Raises:
            WeightsError: The weights are missing or not the expected ones.
        """
        model = embedder_onnx(progress)
        tokenizer = embedder_tokenizer()
        from tokenizers import Tokenizer

        self._session = onnx_session(str(model), threads)
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32 (len(texts), 384) with unit rows; an empty text has a vector too."""
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        # A lone surrogate cannot be given to the tokenizer; it carries no meaning to keep.
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        encodings = self._tokenizer.encode_batch(clean, add_special_tokens=False)
        windows = [_windows(encoding.ids) for encoding in encodings]
        owners = np.repeat(np.arange(len(texts)), [len(group) for group in windows])
        flat = [window for group in windows for window in group]
        weights = np.array([max(len(window), 1) for window in flat], dtype=np.float32)
        vectors = self._run(flat)
        sums = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        np.add.at(sums, owners, vectors * weights[:, None])
        return _unit(sums)

    def _run(self, windows: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the mean states (len(windows), 384); runs batches of similar length."""
        first, last = self._special()
        out = np.empty((len(windows), self.dimensions), dtype=np.float32)
        order = sorted(range(len(windows)), key=lambda i: len(windows[i]))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            width = len(windows[batch[-1]]) + 2
            ids = np.zeros((len(batch), width), dtype=np.int64)
            mask = np.zeros((len(batch), width), dtype=np.int64)
            for row, index in enumerate(batch):
                tokens = [first, *windows[index], last]
                ids[row, : len(tokens)] = tokens
                mask[row, : len(tokens)] = 1
            (states,) = self._session.run(None, {"input_ids": ids, "attention_mask": mask})
            real = mask[:, :, None].astype(np.float32)
            out[batch] = (states * real).sum(axis=1) / real.sum(axis=1)
        return out

    def _special(self) -> tuple[int, int]:
        return (
            self._tokenizer.token_to_id("[CLS]"),
            self._tokenizer.token_to_id("[SEP]"),
        )


class SentenceTransformerEncoder:
    """Any sentence-transformers model by name or folder; needs torch, loaded at the first use."""

    def __init__(self, name_or_path: str, device: str = "cpu") -> None:
        """Remember which model; nothing is loaded yet.

        Args:
            name_or_path: A folder, or a hub name where a hub can be reached.
            device: As torch names it.
        """
        self._name = name_or_path
        self._device = device
        self._lock = threading.Lock()
        self._model: Any = None

    @property
    def dimensions(self) -> int:
        """Length of the vectors; loads the model."""
        return int(self._loaded().get_sentence_embedding_dimension())

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32 (len(texts), dimensions) with unit rows.

        Raises:
            OSError: The model cannot be found.
        """
        model = self._loaded()
        if not texts:
            return np.zeros((0, self.dimensions), dtype=np.float32)
        with self._lock:
            vectors = model.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
        return _unit(np.asarray(vectors, dtype=np.float32))

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
                from sentence_transformers import SentenceTransformer

                self._model = SentenceTransformer(self._name, device=self._device)
            return self._model


def _windows(ids: Sequence[int]) -> list[Sequence[int]]:
    """Cut token ids into overlapping windows that leave room for the two special tokens."""
    size = _TOKENS - 2
    if len(ids) <= size:
        return [ids]
    starts = list(range(0, len(ids) - size, size - _OVERLAP)) + [len(ids) - size]
    return [ids[start : start + size] for start in starts]


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, 1e-12), dtype=np.float32)
