"""Any Flair ``SequenceTagger`` in place of the shipped one, for those who can afford it."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from privacy.detection.ner.windows import Window, make_windows
from privacy.detection.ner.words import split_words
from privacy.types import LOC, ORG, PERSON, Span

RECOGNIZER: Final = "flair"
FLAIR_TYPES: Final[Mapping[str, str]] = {
    "PER": PERSON,
    "PERSON": PERSON,
    "ORG": ORG,
    "LOC": LOC,
    "GPE": LOC,
    "FAC": LOC,
}
WINDOW_WORDS: Final = 200
OVERLAP_WORDS: Final = 40


class FlairTagger:
    """Tags with a Flair model. Calls from several threads take turns.

    Args:
        tagger: A loaded ``flair.models.SequenceTagger``.
        types: The model's labels to our types; entities with other labels are left out.
        batch: Windows per model call.
    """

    def __init__(
        self, tagger: Any, types: Mapping[str, str] = FLAIR_TYPES, batch: int = 16
    ) -> None:
        self._tagger = tagger
        self._types = types
        self._batch = batch
        self._lock = threading.Lock()

    @classmethod
    def load(cls, name: str | Path, types: Mapping[str, str] = FLAIR_TYPES) -> "FlairTagger":
        """Load a model file, or a model of Flair's hub where the hub can be reached.

        Args:
            name: Path of a checkpoint, or a name such as ``flair/ner-english-ontonotes-fast``.
            types: See the class.

        Raises:
            RuntimeError: Flair is not installed, or the model can neither be read nor fetched.
        """
        try:
            from flair.models import SequenceTagger
        except ImportError as error:
            raise RuntimeError(
                "Flair is not installed: pip install -c constraints.txt -e '.[train]'"
            ) from error
        try:
            return cls(SequenceTagger.load(str(name)), types)
        except Exception as error:
            raise RuntimeError(
                f"The Flair model {str(name)!r} cannot be loaded. Give the path of a checkpoint,"
                " or the name of a hub model on a machine that reaches the hub."
            ) from error

    def tag(self, texts: Sequence[str]) -> list[list[Span]]:
        """Entities of each text, sorted, not overlapping, in code points of that text."""
        words = [split_words(text) for text in texts]
        jobs: list[tuple[int, Window]] = []
        for number, found in enumerate(words):
            windows = make_windows([1] * len(found), WINDOW_WORDS, OVERLAP_WORDS)
            jobs.extend((number, window) for window in windows)
        spans: list[list[Span]] = [[] for _ in texts]
        tokens = [
            [texts[number][low:high] for low, high in words[number][window.start : window.end]]
            for number, window in jobs
        ]
        for (number, window), entities in zip(jobs, self._predict(tokens), strict=True):
            for start, end, label, score in entities:
                first, last = start + window.start, end + window.start
                kind = self._types.get(label)
                if kind is None or not window.keep_start <= first < window.keep_end:
                    continue
                low, high = words[number][first][0], words[number][last - 1][1]
                if not spans[number] or spans[number][-1].end <= low:
                    spans[number].append(Span(low, high, kind, score, RECOGNIZER))
        return spans

    def _predict(self, tokens: Sequence[list[str]]) -> list[list[tuple[int, int, str, float]]]:
        """Entities of each window: first word, one past the last, label, score."""
        if not tokens:
            return []
        from flair.data import Sentence

        sentences = [Sentence(list(window)) for window in tokens]
        with self._lock:
            self._tagger.predict(
                sentences, mini_batch_size=self._batch, label_name="penname", verbose=False
            )
        return [
            [
                (
                    span.tokens[0].idx - 1,
                    span.tokens[-1].idx,
                    str(span.get_label("penname").value),
                    float(span.get_label("penname").score),
                )
                for span in sentence.get_spans("penname")
            ]
            for sentence in sentences
        ]
