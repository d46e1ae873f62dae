"""Constrained Viterbi decoding of BIOES label scores into entities."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FORBIDDEN = -1e9
_CLOSED_BEFORE = ("O", "B", "S")  # may follow a word that no entity crosses into
_OPEN = ("B", "I")  # an entity goes on after these


class Decoder:
    """Viterbi search over label sequences that BIOES allows.

    A sequence is allowed when every ``B-x`` or ``I-x`` is followed by ``I-x`` or ``E-x``, nothing
    else is followed by those, and the last word leaves no entity open. Viterbi, "Error bounds for
    convolutional codes" (1967); the tags are those of Ratinov and Roth, "Design challenges and
    misconceptions in named entity recognition" (2009).

    Args:
        labels: ``O`` and ``B-x``, ``I-x``, ``E-x``, ``S-x`` for each type x, in column order.

    Raises:
        ValueError: A label is not of this form, or ``O`` is absent.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        parts = [label.partition("-")[::2] for label in labels]
        if "O" not in labels or any(p not in "BIOES" or (p == "O") != (not t) for p, t in parts):
            raise ValueError("labels must be O and B-, I-, E-, S- with a type each")
        self.labels = tuple(labels)
        self.outside = self.labels.index("O")
        self.types = tuple(dict.fromkeys(kind for _, kind in parts if kind))
        self._parts = parts
        size = len(parts)
        self._allowed = np.zeros((size, size), dtype=bool)
        for i, (prefix, kind) in enumerate(parts):
            for j, (next_prefix, next_kind) in enumerate(parts):
                self._allowed[i, j] = (
                    next_prefix in ("I", "E") and kind == next_kind
                    if prefix in _OPEN
                    else next_prefix in _CLOSED_BEFORE
                )
        self._first = np.array([prefix in _CLOSED_BEFORE for prefix, _ in parts])
        self._last = np.array([prefix not in _OPEN for prefix, _ in parts])
        self._penalty = np.where(self._allowed, 0.0, FORBIDDEN)
        self.members = np.array(
            [[kind == wanted for _, kind in parts] for wanted in self.types], dtype=np.float64
        )

    def best_path(self, scores: NDArray[np.floating]) -> NDArray[np.intp]:
        """The allowed label sequence of the largest summed score.

        Args:
            scores: Log-probabilities, ``(words, labels)``.

        Returns:
            Label indices, ``(words,)``.
        """
        count = len(scores)
        if count == 0:
            return np.zeros(0, dtype=np.intp)
        greedy: NDArray[np.intp] = np.argmax(scores, axis=1)
        if self._valid(greedy):
            return greedy  # the best sequence without constraints obeys them: nothing to search
        best = scores[0] + np.where(self._first, 0.0, FORBIDDEN)
        back = np.zeros((count, len(self.labels)), dtype=np.intp)
        columns = np.arange(len(self.labels))
        for word in range(1, count):
            total = best[:, None] + self._penalty
            back[word] = total.argmax(axis=0)
            best = total[back[word], columns] + scores[word]
        path = np.zeros(count, dtype=np.intp)
        path[-1] = int(np.argmax(best + np.where(self._last, 0.0, FORBIDDEN)))
        for word in range(count - 1, 0, -1):
            path[word - 1] = back[word, path[word]]
        return path

    def _valid(self, path: NDArray[np.intp]) -> bool:
        return bool(
            self._first[path[0]]
            and self._last[path[-1]]
            and self._allowed[path[:-1], path[1:]].all()
        )

    def entities(self, path: Sequence[int] | NDArray[np.intp]) -> list[tuple[int, int, str]]:
        """Entities of an allowed sequence: ``(first word, one past the last, type)``."""
        found: list[tuple[int, int, str]] = []
        start = 0
        labels = np.asarray(path, dtype=np.intp)
        for word in np.flatnonzero(labels != self.outside).tolist():
            prefix, kind = self._parts[int(labels[word])]
            if prefix in ("B", "S"):
                start = word
            if prefix in ("E", "S"):
                found.append((start, word + 1, kind))
        return found


def log_softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Log-probabilities along the last axis, in float64."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    result: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result
