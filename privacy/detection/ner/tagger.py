"""The shipped entity tagger: persons, organisations and places in texts of any length."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privacy.detection.ner.decode import FORBIDDEN, Decoder, log_softmax
from privacy.detection.ner.weights import Weights, WeightsError, read_weights
from privacy.detection.ner.windows import Window, make_windows
from privacy.detection.ner.words import (
    SHAPE_LINE,
    SHAPE_OTHER,
    is_paragraph_break,
    shape,
    split_words,
)
from privacy.interrupt import checkpoint
from privacy.onnx import onnx_session
from privacy.types import Span

RECOGNIZER: Final = "ner"
WINDOW_PIECES: Final = 126
OVERLAP_PIECES: Final = 40
WORD_PIECES: Final = 16  # a word's label is read from its first piece; more only add context

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class _Text:
    """A text in the form in which the model reads it."""

    words: list[tuple[int, int]]
    pieces: list[list[int]]
    shapes: list[int]
    windows: list[Window]


class NerTagger:
    """Finds PERSON, ORG and LOC. Safe to share between threads.

    Args:
        weights: Verified weights.
        threads: Threads that one call may use for the model.

    Raises:
        WeightsError: The runtime cannot read the model.
    """

    def __init__(self, weights: Weights, threads: int = 1) -> None:
        from tokenizers import Tokenizer

        try:
            self._session = onnx_session(weights.model, threads)
            self._tokenizer = Tokenizer.from_str(weights.tokenizer)
        except Exception as error:
            raise WeightsError(
                "The tagger weights cannot be loaded by the installed onnxruntime and tokenizers."
                " Install the versions that the package asks for."
            ) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._decoder = Decoder(weights.labels)
        self._bias = weights.outside_bias
        self._cls = int(self._tokenizer.token_to_id("[CLS]"))
        self._sep = int(self._tokenizer.token_to_id("[SEP]"))
        self._unknown = int(self._tokenizer.token_to_id("[UNK]"))
        self.version = weights.version

    @classmethod
    def load(cls, path: Path | None = None, threads: int = 1) -> "NerTagger":
        """Load a weight folder, None for the shipped one, after verifying its hashes.

        Raises:
            WeightsError: A file is absent or damaged.
        """
        return cls(read_weights(path), threads)

    def tag(self, texts: Sequence[str]) -> list[list[Span]]:
        """Entities of each text, sorted by position, not overlapping.

        Args:
            texts: Any texts, of any length; long ones are read in overlapping windows.

        Returns:
            For each text its spans, in code points of that text. ``score`` is the mean over the
            words of the model's probability that the word belongs to an entity of that type.
        """
        return [self._tag_one(text) for text in texts]

    def logits(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Raw scores of the words of one window, for comparison with the trained tagger.

        Returns:
            ``(words, labels)``, float32.
        """
        pieces, shapes = self._encode(words)
        item = _Text([(0, 0)] * len(words), pieces, shapes, [])
        return self._run(item, Window(0, len(words), 0, len(words)))

    def _tag_one(self, text: str) -> list[Span]:
        # Half of a surrogate pair is no character: the tokenizer cannot take it. Same length.
        text = _SURROGATE.sub("\ufffd", text)
        item = self._prepare(text)
        return self._spans(text, item, self._scores(item)) if item.words else []

    def _prepare(self, text: str) -> _Text:
        words = split_words(text)
        pieces, shapes = self._encode([text[start:end] for start, end in words])
        windows = make_windows([len(p) for p in pieces], WINDOW_PIECES, OVERLAP_PIECES)
        return _Text(words, pieces, shapes, windows)

    def _encode(self, words: Sequence[str]) -> tuple[list[list[int]], list[int]]:
        pieces: list[list[int]] = [[] for _ in words]
        if words:
            encoding = self._tokenizer.encode(
                list(words), is_pretokenized=True, add_special_tokens=False
            )
            for piece, word in zip(encoding.ids, encoding.word_ids, strict=True):
                if len(pieces[word]) < WORD_PIECES:
                    pieces[word].append(piece)
        shapes = [shape(word) for word in words]
        for number, kind in enumerate(shapes):
            if kind == SHAPE_LINE:
                pieces[number] = [self._sep]
        # A word that the tokenizer drops (a lone control character) still needs a place.
        return [p or [self._unknown] for p in pieces], shapes

    def _scores(self, item: _Text) -> NDArray[np.float64]:
        """Log-probabilities of a text's words, ``(words, labels)``.

        Each window is a model call of its own. The int8 graph scales its activations by the range
        of the whole input, so a window's scores would depend on what shares its batch, and the
        same text would not always give the same entities. Batches save no time on a processor:
        with 128 pieces per window the matrix products are already large.
        """
        scores = np.zeros((len(item.words), len(self._decoder.labels)), dtype=np.float64)
        for window in item.windows:
            checkpoint()
            logits = self._run(item, window)
            kept = logits[window.keep_start - window.start : window.keep_end - window.start]
            scores[window.keep_start : window.keep_end] = log_softmax(kept)
        return scores

    def _run(self, item: _Text, window: Window) -> NDArray[np.float32]:
        """Logits of a window's words, ``(words, labels)``."""
        ids, shapes, first = [self._cls], [SHAPE_OTHER], []
        for word in range(window.start, window.end):
            first.append(len(ids))
            ids.extend(item.pieces[word])
            shapes.extend([item.shapes[word]] * len(item.pieces[word]))
        ids.append(self._sep)
        shapes.append(SHAPE_OTHER)
        feed = {
            "input_ids": np.array([ids], dtype=np.int64),
            "shapes": np.array([shapes], dtype=np.int64),
        }
        output: NDArray[np.float32] = self._session.run(["logits"], feed)[0][0][first]
        return output

    def _spans(self, text: str, item: _Text, scores: NDArray[np.float64]) -> list[Span]:
        words = item.words
        biased = scores.copy()
        biased[:, self._decoder.outside] -= self._bias
        for number, (start, end) in enumerate(words):
            if item.shapes[number] == SHAPE_LINE and is_paragraph_break(text[start:end]):
                biased[number] = FORBIDDEN
                biased[number, self._decoder.outside] = 0.0
        path = self._decoder.best_path(biased)
        spans = []
        for low, high, kind in self._decoder.entities(path):
            low, high = _trim(item.shapes, low, high)
            if low == high:
                continue
            members = self._decoder.members[self._decoder.types.index(kind)]
            score = float((np.exp(scores[low:high]) @ members).mean())
            start, end = words[low][0], words[high - 1][1]
            spans.append(Span(start, end, kind, min(score, 1.0), RECOGNIZER))
        return spans


def _trim(shapes: Sequence[int], low: int, high: int) -> tuple[int, int]:
    """An entity without line breaks at its ends."""
    while low < high and shapes[low] == SHAPE_LINE:
        low += 1
    while low < high and shapes[high - 1] == SHAPE_LINE:
        high -= 1
    return low, high
