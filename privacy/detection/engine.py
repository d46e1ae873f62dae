"""The detection engine: recognizers and tagger in, spans without overlaps out."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np

from privacy.detection.base import Recognizer, Tagger
from privacy.detection.cache import SpanCache
from privacy.detection.casing import DISCOUNT, recased
from privacy.detection.escapes import DECODED, Decoded, decoded
from privacy.detection.protected import Protected, is_plausible
from privacy.detection.resolve import DEFAULT_THRESHOLD, resolve
from privacy.detection.windows import find_windowed
from privacy.interrupt import checkpoint
from privacy.types import ENTITY_TYPES, NAMED_TYPES, Span

DEFAULT_THRESHOLDS: Final[Mapping[str, float]] = MappingProxyType(
    dict.fromkeys(ENTITY_TYPES, DEFAULT_THRESHOLD)
)


# A control character separates like a blank, and no recognizer has to know them; same length.
_CONTROLS: Final = dict.fromkeys(
    {*range(0x20), *range(0x7F, 0xA0)} - set(map(ord, "\t\n\r\x85")), " "
)
# The letter of an escaped line break or tab belongs to no name: "Dear team,\\nVarga has left"; same length.
_ESCAPE: Final = re.compile(r"\\[nrt](?=[^\W\d_a-z])")
# Nor does a percent-encoded blank or sign: "q=tadeo%20brandt".
_SIGN: Final = re.compile(r"(?:%|(?<=%))[0-3][0-9A-Fa-f](?=\w)")


_TYPED: Final = {
    **dict.fromkeys((*range(0x2010, 0x2016), 0x2212, 0xFE58, 0xFE63), "-"),
    **dict.fromkeys((0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " "),
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
}
# Scripts that write no blanks, so that a number beside them begins a word.
_UNSPACED_LETTERS: Final = re.compile(
    "[\u0e00-\u0e4f\u0e80-\u0ecf\u1000-\u103f\u1780-\u17d3\u3005-\u3007\u3040-\u30ff\u3400-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff]"
)


class DetectionFailed(RuntimeError):
    """A recognizer or the tagger failed; nothing may leave on the strength of this text.

    The message names the recognizer and the kind of error, never a piece of the text.
    """


class Detector:
    """Finds the entities of texts of any length; thread-safe.

    Args:
        recognizers: What finds by form; names must be unique.
        tagger: What finds by context, or None for recognizers alone.
        thresholds: Least score by entity type; 0.5 for a type that is not named.
        cache_size: Most results kept, by content hash; 0 turns the cache off.
        cache_bytes: Most bytes the kept results may take, estimated.

    Raises:
        ValueError: Two recognizers share a name, or a threshold is not in [0, 1] or of no known type.
    """

    def __init__(
        self,
        recognizers: Sequence[Recognizer],
        tagger: Tagger | None,
        *,
        thresholds: Mapping[str, float] = DEFAULT_THRESHOLDS,
        cache_size: int = 4096,
        cache_bytes: int = 32 * 1024 * 1024,
    ) -> None:
        names = [recognizer.name for recognizer in recognizers]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"recognizer names must be unique; used twice: {', '.join(twice)}")
        for type_, value in thresholds.items():
            if type_ not in ENTITY_TYPES or not 0.0 <= value <= 1.0:
                raise ValueError(
                    f"threshold {value!r} for {type_!r}: give a known entity type and a value in [0, 1]"
                )
        # Sorted, so that no result can depend on the order of registration.
        self._recognizers = tuple(sorted(recognizers, key=lambda r: r.name))
        self._tagger = tagger
        self._thresholds = dict(thresholds)
        self._cache = SpanCache(cache_size, cache_bytes)

    def detect(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return for each text its spans: in code points, sorted by start, without overlaps.

        Raises:
            DetectionFailed: A recognizer or the tagger failed.
        """
        keys = [SpanCache.key(text) for text in texts]
        known: dict[bytes, tuple[Span, ...]] = {}
        missing: dict[bytes, str] = {}
        for key, text in zip(keys, texts, strict=True):
            cached = known.get(key) or self._cache.get(key)
            if cached is not None:
                known[key] = cached
            else:
                missing[key] = text
        fresh = self._candidates(list(missing.values()))
        for (key, text), candidates in zip(missing.items(), fresh, strict=True):
            known[key] = tuple(self._resolved(text, candidates))
            self._cache.put(key, known[key])
        return [list(known[key]) for key in keys]

    def explain(self, text: str) -> list[Span]:
        """Return every raw candidate of ``text`` before resolution, sorted by start, end and type.

        Raises:
            DetectionFailed: A recognizer or the tagger failed.
        """
        candidates = self._candidates([text])[0]
        return sorted(candidates, key=lambda s: (s.start, s.end, s.type, s.recognizer, s.score))

    def _resolved(self, text: str, candidates: Sequence[Span]) -> list[Span]:
        if not candidates:
            return []
        protected = Protected(text)
        if "%" in text:
            candidates = [_past_sign(text, span) for span in candidates]
        # Named spans are judged again afterwards: resolution may leave a piece of one.
        allowed = [s for s in candidates if protected.allows(s) and is_plausible(text, s)]
        resolved = resolve(text, allowed, self._thresholds)
        return [s for s in resolved if s.type not in NAMED_TYPES or is_plausible(text, s)]

    def _candidates(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the candidates of each text; what a text spells in escapes is found decoded."""
        texts = [text.translate(_CONTROLS) for text in texts]
        views = {i: view for i, text in enumerate(texts) if (view := decoded(text)) is not None}
        found = self._recognized([*texts, *(view.text for view in views.values())])
        # The tagger, which costs most, reads the decoded view alone.
        readable = [views[i].text if i in views else text for i, text in enumerate(texts)]
        tags = self._tagged([_unescaped(text) for text in readable])
        for index, tagged in enumerate(tags):
            if index not in views:
                found[index].extend(tagged)
        for place, (index, view) in enumerate(views.items(), len(texts)):
            found[index] = _with_decoded(found[index], view, [*found[place], *tags[index]])
        return found[: len(texts)]

    def _recognized(self, texts: Sequence[str]) -> list[list[Span]]:
        plain = [_unescaped(text) for text in texts]
        typed = [_as_typed(text) for text in texts]
        found: list[list[Span]] = [[] for _ in texts]
        for recognizer in self._recognizers:
            whole = bool(getattr(recognizer, "whole_text", False))
            named = set(recognizer.types) <= set(NAMED_TYPES)
            for spans, text, bare in zip(found, plain if named else texts, typed, strict=True):
                checkpoint()
                forms = (text,) if named or bare is None else (text, bare)
                try:
                    new = [
                        span
                        for form in forms
                        for span in (
                            recognizer.find(form) if whole else find_windowed(recognizer.find, form)
                        )
                    ]
                except Exception as error:
                    raise DetectionFailed(
                        f"recognizer {recognizer.name!r} failed with {type(error).__name__}"
                    ) from None
                spans.extend(new)
        return found

    def _tagged(self, texts: Sequence[str]) -> list[list[Span]]:
        if self._tagger is None or not texts:
            return [[] for _ in texts]
        second = [(i, *pair) for i, text in enumerate(texts) for pair in recased(text)]
        try:
            tagged = self._tagger.tag([*texts, *(variant for _, _, variant in second)])
        except Exception as error:
            raise DetectionFailed(f"the tagger failed with {type(error).__name__}") from None
        if len(tagged) != len(texts) + len(second):
            raise DetectionFailed("the tagger returned results for another number of texts")
        result = [list(spans) for spans in tagged[: len(texts)]]
        for (index, offset, _), spans in zip(second, tagged[len(texts) :], strict=True):
            result[index].extend(
                replace(
                    span,
                    start=span.start + offset,
                    end=span.end + offset,
                    score=span.score * DISCOUNT,
                    recognizer=f"{span.recognizer}.recased",
                )
                for span in spans
            )
        return result


def _unescaped(text: str) -> str:
    return _ESCAPE.sub("  ", text) if "\\" in text else text


def _as_typed(text: str) -> str | None:
    """Return a text with the signs of a plain keyboard in its identifiers, None when it has no others.

    Of equal length: "212\u2011555\u20110142", full-width digits, "電話は090-1234-5678です".
    """
    if text.isascii():
        return None
    bare = _UNSPACED_LETTERS.sub("、", text.translate(_TYPED))
    return None if bare == text else bare


def _past_sign(text: str, span: Span) -> Span:
    sign = _SIGN.match(text, span.start) if span.type in NAMED_TYPES else None
    return replace(span, start=sign.end()) if sign and sign.end() < span.end else span


def _with_decoded(raw: Sequence[Span], view: Decoded, spans: Sequence[Span]) -> list[Span]:
    """Add the names of the decoded view; one spelt in escapes goes before what its pieces look like."""
    spelt, added = [], []
    for span in spans:
        start, end = view.origin(span.start, span.end)
        if span.type not in NAMED_TYPES:
            continue
        if end - start == span.end - span.start:
            added.append(replace(span, start=start, end=end))
        else:
            name = f"{span.recognizer}{DECODED}"
            spelt.append(replace(span, start=start, end=end, recognizer=name))
    taken = np.zeros(int(view.ends[-1]), bool)
    for span in spelt:
        taken[span.start : span.end] = True
    kept = [
        span
        for span in (*raw, *added)
        if span.type not in NAMED_TYPES or not taken[span.start : span.end].any()
    ]
    return kept + spelt
