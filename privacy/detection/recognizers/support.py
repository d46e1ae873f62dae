"""What several recognizers share: context look-ups and the adapter to presidio's patterns."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Final

from privacy.detection.presidio import load_class
from privacy.types import Span

# Joins the regions of a digest: no pattern matches it and it is no word character.
_GAP: Final = "\x00"


_JOINT: Final = re.compile(r"_|(?<=[a-z])(?=[A-Z])")


def before(text: str, start: int, width: int = 48) -> str:
    """Return at most ``width`` characters that precede ``start``."""
    return text[max(0, start - width) : start]


def after(text: str, end: int, width: int = 24) -> str:
    """Return at most ``width`` characters that follow ``end``."""
    return text[end : end + width]


def near(text: str, start: int, end: int, words: re.Pattern[str], width: int = 48) -> bool:
    """Tell whether ``words`` occurs within ``width`` before or half of that after the range."""
    return bool(
        words.search(spoken(before(text, start, width)))
        or words.search(spoken(after(text, end, width // 2)))
    )


def spoken(text: str) -> str:
    """Return a context with the words of its identifiers apart: ``contact_phone``, ``patientId``."""
    return _JOINT.sub(" ", text)


def group_span(
    match: re.Match[str], group: int | str, type_: str, score: float, recognizer: str
) -> Span:
    """Return the span of one group of a match."""
    return Span(match.start(group), match.end(group), type_, score, recognizer)


class Digest:
    """The few regions of a text that may hold something, joined, with the way back.

    Regular expressions of presidio run over the digest instead of the text: most texts hold no
    digits where they look, so most calls cost one scan.

    Attributes:
        text: The regions, joined by a character that no pattern matches.
        regions: The ranges of the original text they are.
    """

    def __init__(self, text: str, regions: Iterable[tuple[int, int]]) -> None:
        self.regions = list(regions)
        parts: list[str] = []
        self._starts: list[int] = []
        self._origins: list[int] = []
        length = 0
        for start, end in self.regions:
            parts.append(text[start:end])
            self._starts.append(length)
            self._origins.append(start)
            length += end - start + 1
        self.text = _GAP.join(parts)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Map a range of the digest to the range of the original text."""
        index = bisect_right(self._starts, start) - 1
        shift = self._origins[index] - self._starts[index]
        return start + shift, end + shift


def digest_of(text: str, candidate: re.Pattern[str]) -> Digest:
    """Return the digest of the matches of ``candidate`` in ``text``."""
    return Digest(text, (match.span() for match in candidate.finditer(text)))


# (text, start, end, presidio's score) -> our score, or None to drop the candidate.
Judge = Callable[[str, int, int, float], float | None]


class PresidioPattern:
    """One recognizer of presidio, run over a digest; `Judge` turns its score into ours.

    Args:
        module: Path below ``presidio_analyzer``, such as "predefined_recognizers.generic.ip_recognizer".
        name: Class in that module.
        patterns: (name, regular expression, score) triples instead of the class's own patterns.
    """

    def __init__(
        self, module: str, name: str, patterns: Iterable[tuple[str, str, float]] | None = None
    ) -> None:
        self._module = f"predefined_recognizers.{module}"
        self._name = name
        self._patterns = patterns

    @cached_property
    def _analyzer(self) -> Any:
        # First use, not construction: building the registry stays free of presidio.
        made = load_class(self._module, self._name)
        if self._patterns is None:
            return made()
        pattern = load_class("pattern", "Pattern")
        return made(patterns=[pattern(*triple) for triple in self._patterns])

    def matches(self, digest: Digest) -> list[tuple[int, int, float]]:
        """Return (start, end, score) in the original text, best score first for one range."""
        if not digest.text:
            return []
        analyzer = self._analyzer
        results = analyzer.analyze(digest.text, analyzer.supported_entities)
        found = (
            (*digest.origin(result.start, result.end), float(result.score)) for result in results
        )
        return sorted(found, key=lambda item: (item[0], item[1], -item[2]))

    def spans(
        self, text: str, digest: Digest, type_: str, recognizer: str, judge: Judge
    ) -> list[Span]:
        """Return the judged matches as spans."""
        spans = []
        for start, end, score in self.matches(digest):
            judged = judge(text, start, end, score)
            if judged is not None:
                spans.append(Span(start, end, type_, judged, recognizer))
        return spans


# A run that may be an identifier: a token with a digit, with inner blanks between digit groups.
DIGIT_RUN: Final = re.compile(
    r"(?<![\w.])[A-Za-z+(]{0,6}\d[\w./+()-]*(?: [\w./+()-]*\d[\w./+()-]*){0,7}"
)


def luhn(digits: str) -> bool:
    """Tell whether a digit string passes the Luhn check (ISO/IEC 7812-1, annex B)."""
    total = 0
    for position, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if position % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


_CODE_NOISE: Final = re.compile(
    r"[A-Za-z_][\w.]*\(|[\[\]{}()<>$]|^(?:self|os|request|config|settings|env|process|args)\."
)


def looks_like_code(value: str) -> bool:
    """Tell whether an assigned value is an expression and not a literal."""
    return bool(_CODE_NOISE.search(value))
