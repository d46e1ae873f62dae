"""The table of forms: every surface under which a substitute may come back, and its original.

A surface is explicit when it was sent, derived when it is a case shape or another Unicode
normal form of an explicit one, or cut from it.  Explicit beats derived.  A surface that leads to two
different originals is dropped: restoration never guesses.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from privacy.restoration.casing import derived, same_shape
from privacy.restoration.gaps import collapse, with_gaps_like

KINDS: Final = ("given", "family", "mention", "initialled", "whole", "exact", "placeholder")

# What is derived from a pair of each kind.  A mention of several words is written in capitals in
# headings; its lower-case form is left to its components, which are drawn without common words.
_SHAPES: Final[dict[str, tuple[str, ...]]] = {
    "given": ("upper", "lower", "title", "sentence"),
    "family": ("upper", "lower", "title", "sentence"),
    "whole": ("upper", "lower", "title", "sentence"),
    "mention": ("upper",),
    "initialled": ("upper",),
    "exact": (),
    "placeholder": (),
}
_EMAIL: Final = re.compile(r"[^\s@]+(?:@|%40)[^\s@]+\Z", re.IGNORECASE)
_PLACEHOLDER: Final = re.compile(r"[\[<{(]?([A-Za-z]+(?:_[A-Za-z0-9]+)+)[\]>})]?\Z")
# Names that are also the head of a negation: "Don't" is never a form of Don.
_NEGATED: Final = frozenset({"don", "can", "won"})


@dataclass(frozen=True, slots=True)
class Pair:
    """One substitute and the original it stands for.

    Attributes:
        substitute: What went out; not empty, no white space at either end.
        original: What comes back.
        kind: ``given``/``family`` (one component of a person) and ``whole`` (an organisation or a
            place): also in upper, lower, title and sentence case, across a line break.  ``mention``
            (a surface of several components): as written or in upper case, across a line break.
            ``initialled`` (a mention cut to an initial, which was not sent): the same, and what was sent
            goes before.
            ``exact`` (an identifier): byte for byte, e-mail addresses in any case.  ``placeholder``
            (a numbered marker such as ``[PERSON_1]``): in any case and with other brackets.
    """

    substitute: str = field(repr=False)
    original: str = field(repr=False)
    kind: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of pair {self.kind!r}: use one of {', '.join(KINDS)}")
        if not self.substitute or self.substitute != self.substitute.strip():
            raise ValueError(
                "a substitute must not be empty nor begin or end with white space; "
                "strip it before building the pair"
            )


@dataclass(frozen=True, slots=True)
class Form:
    """A surface and its original; ``strict`` when the white space must match byte for byte."""

    surface: str = field(repr=False)
    original: str = field(repr=False)
    strict: bool


def ascii_lower(text: str) -> str:
    """Lower-case A to Z only, so that offsets stay; a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").lower().decode("utf-8")


def _normal_forms(surface: str) -> tuple[str, ...]:
    if surface.isascii():
        return (surface,)
    forms = (surface, unicodedata.normalize("NFC", surface), unicodedata.normalize("NFD", surface))
    return tuple(dict.fromkeys(forms))


def _derived_surfaces(pair: Pair, is_common: bool) -> Iterator[tuple[str, str]]:
    """Yield (surface, original) of everything derived from a pair."""
    shapes = _SHAPES[pair.kind]
    if pair.kind == "mention" and not any(c.isspace() for c in pair.substitute):
        shapes = ()
    if is_common:
        # 'rose' in lower case is a flower whoever is called Rose.
        shapes = ()
    for other in _normal_forms(pair.substitute)[1:]:
        yield other, pair.original
    for form, original in derived(pair.substitute, pair.original, shapes).items():
        for other in _normal_forms(form):
            yield other, original
    if pair.substitute.casefold() in _NEGATED and pair.kind != "exact":
        shaped = (pair.substitute, *derived(pair.substitute, "", shapes))
        for negation in (s + mark + t for s in shaped for mark in "'’" for t in "tT"):
            yield negation, negation


def _placeholder_surfaces(substitute: str) -> Iterator[str]:
    """Yield the lower-case spellings under which a model returns a numbered marker."""
    yield collapse(ascii_lower(substitute)).text
    found = _PLACEHOLDER.match(substitute)
    if found is None:
        return
    core = found.group(1).lower()
    for word in (core, core.replace("_", r"\_")):
        yield word
        yield from (f"[{word}]", f"<{word}>", f"{{{word}}}", rf"\[{word}\]")
    spaced = core.replace("_", " ")
    yield from (f"[{spaced}]", f"<{spaced}>")


@dataclass(slots=True)
class FormTable:
    """All forms of a session.

    Attributes:
        surfaces: Collapsed surfaces of case-sensitive forms, sorted.
        folded: Collapsed lower-case surfaces of forms that match in any case, sorted.
    """

    surfaces: list[str] = field(repr=False)
    folded: list[str] = field(repr=False)
    _exact: dict[str, Form] = field(repr=False)
    _tolerant: dict[str, Form] = field(repr=False)
    _any_case: dict[str, Form] = field(repr=False)
    _firsts: frozenset[str] = field(init=False)
    _has_odd_space: bool = field(init=False)
    longest: int = field(init=False)

    def __post_init__(self) -> None:
        firsts = {s[0] for s in self.surfaces}
        firsts.update(c for s in self.folded for c in (s[0], s[0].upper()))
        self._firsts = frozenset(firsts)
        self._has_odd_space = any(c.isspace() and c != " " for s in self.surfaces for c in s)
        self.longest = max((len(s) for s in (*self.surfaces, *self.folded)), default=0)

    def patterns(self) -> list[str]:
        """Return what an automaton over collapsed, ASCII-lowered text has to look for."""
        return sorted({*map(ascii_lower, self.surfaces), *self.folded})

    def restored(self, raw: str, collapsed: str) -> str | None:
        """Return what stands for the matched text, or None when it is no form after all.

        Args:
            raw: The matched text as it stands.
            collapsed: The same with every gap as one blank.
        """
        form = self._exact.get(raw)
        if form is not None:
            return form.original
        form = self._tolerant.get(collapsed)
        if form is not None:
            return with_gaps_like(raw, form.surface, form.original)
        form = self._any_case.get(ascii_lower(collapsed))
        if form is None:
            return None
        # An address in capitals gets its original in capitals; a marker says nothing about case.
        return same_shape(raw, form.original) if form.strict else form.original

    def may_continue(self, prefix: str) -> bool:
        """Say whether a collapsed text is a proper prefix of some form."""
        if prefix[0] not in self._firsts:
            return False
        if self._has_odd_space and prefix[-1].isspace():
            # "A\n" is a gap so far, but may go on to the two line breaks that a surface holds.
            prefix = prefix.rstrip()
        return _has_longer(self.surfaces, prefix) or (
            bool(self.folded) and _has_longer(self.folded, ascii_lower(prefix))
        )


def _has_longer(ordered: list[str], prefix: str) -> bool:
    place = bisect_left(ordered, prefix)
    if place < len(ordered) and ordered[place] == prefix:
        place += 1
    return place < len(ordered) and ordered[place].startswith(prefix)


class _Candidates:
    """Collects surfaces with all the originals they could mean, explicit apart from derived."""

    def __init__(self) -> None:
        self.explicit: dict[str, dict[str, bool]] = {}
        self.derived: dict[str, dict[str, bool]] = {}
        self.any_case: dict[str, dict[str, bool]] = {}

    def add(self, pair: Pair, is_common: bool) -> None:
        if pair.kind == "placeholder":
            for surface in _placeholder_surfaces(pair.substitute):
                self.any_case.setdefault(surface, {})[pair.original] = False
            return
        # Of "Astrid Trask" for "Lucía de la Fuente" no line break has a place; the parts know theirs.
        strict = pair.kind == "exact" or (
            pair.kind in ("mention", "initialled")
            and len(pair.substitute.split()) != len(pair.original.split())
        )
        sent = self.derived if pair.kind == "initialled" else self.explicit
        sent.setdefault(pair.substitute, {})[pair.original] = strict
        for surface, original in _derived_surfaces(pair, is_common):
            self.derived.setdefault(surface, {})[original] = strict
        if strict and _EMAIL.match(pair.substitute):
            self.any_case.setdefault(ascii_lower(pair.substitute), {})[pair.original] = True

    def forms(self) -> Iterator[tuple[Form, bool]]:
        """Yield the unambiguous forms, each with whether it is explicit."""
        for surface, originals in self.explicit.items():
            if len(originals) == 1:
                ((original, strict),) = originals.items()
                yield Form(surface, original, strict), True
        for surface, originals in self.derived.items():
            if surface not in self.explicit and len(originals) == 1:
                ((original, strict),) = originals.items()
                yield Form(surface, original, strict), False


def _tolerant(forms: Iterable[Form]) -> dict[str, Form | None]:
    """Map collapsed surfaces to the form they stand for in any spacing, None when it is open."""
    table: dict[str, Form | None] = {}
    for form in forms:
        key = collapse(form.surface).text
        if key not in table:
            table[key] = form
            continue
        other = table[key]
        if other is None or collapse(other.original).text != collapse(form.original).text:
            table[key] = None
        elif form.surface == key:
            table[key] = form
    return table


def build_table(pairs: Iterable[Pair], common: Iterable[str]) -> FormTable:
    """Build the table of forms.

    Args:
        pairs: The session's pairs; repeated pairs do no harm.
        common: Substitutes that are common words: of these only the written form counts.
    """
    common = frozenset(common)
    candidates = _Candidates()
    for pair in pairs:
        candidates.add(pair, pair.substitute in common)
    exact: dict[str, Form] = {}
    levels: dict[bool, list[Form]] = {True: [], False: []}
    for form, is_explicit in candidates.forms():
        exact[form.surface] = form
        if not form.strict:
            levels[is_explicit].append(form)
    merged = {**_tolerant(levels[False]), **_tolerant(levels[True])}
    tolerant = {key: form for key, form in merged.items() if form is not None}
    any_case = {
        surface: Form(surface, original, strict)
        for surface, found in candidates.any_case.items()
        if len(found) == 1
        for original, strict in found.items()
    }
    surfaces = {collapse(surface).text for surface in exact} | set(tolerant)
    return FormTable(sorted(surfaces), sorted(any_case), exact, tolerant, any_case)
