"""White space inside a form: any run of blanks, or one line break, stands for one blank."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final

# A gap longer than this separates columns or pages, and bounds what a stream may hold back.
MAX_GAP: Final = 256

_RUN: Final = re.compile(r"\s+")
_BREAKS: Final = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def is_gap(run: str) -> bool:
    """Say whether a run of white space may stand inside a name: at most one line break."""
    return len(run) <= MAX_GAP and len(_BREAKS.findall(run)) <= 1


@dataclass(frozen=True, slots=True)
class Collapsed:
    """A text whose gaps are one blank each, with the way back to the offsets of the original text.

    Attributes:
        text: The collapsed text.
        _places: For each shortened gap the collapsed offset just after it, ascending.
        _shifts: How many characters were dropped up to there.
    """

    text: str = field(repr=False)
    _places: tuple[int, ...]
    _shifts: tuple[int, ...]

    def raw(self, index: int) -> int:
        """Return the original offset of collapsed offset ``index`` (past a gap: past all of it)."""
        place = bisect_right(self._places, index) - 1
        return index if place < 0 else index + self._shifts[place]


def collapse(text: str) -> Collapsed:
    """Collapse every gap of ``text`` to one blank; other white space stays as it is."""
    pieces: list[str] = []
    places: list[int] = []
    shifts: list[int] = []
    done = dropped = 0
    for run in _RUN.finditer(text):
        found = run.group()
        if found == " " or not is_gap(found):
            continue
        pieces.append(text[done : run.start()])
        pieces.append(" ")
        done = run.end()
        if len(found) > 1:
            dropped += len(found) - 1
            places.append(done - dropped)
            shifts.append(dropped)
    if not pieces:
        return Collapsed(text, (), ())
    pieces.append(text[done:])
    return Collapsed("".join(pieces), tuple(places), tuple(shifts))


def gaps_of(surface: str) -> list[str]:
    """Return the runs of white space of ``surface`` in order."""
    return _RUN.findall(surface)


def with_gaps_like(matched: str, substitute: str, original: str) -> str:
    """Give ``original`` the white space that ``matched`` shows where ``substitute`` stood.

    Gap by gap where the two have as many; else the same gap everywhere is carried over, and a mixture
    says nothing about the original, which then keeps its own spacing.
    """
    seen, own = gaps_of(matched), gaps_of(original)
    if not seen or seen == gaps_of(substitute):
        return original
    if len(seen) != len(own):
        if len(set(seen)) != 1:
            return original
        seen = seen[:1] * len(own)
    gaps = iter(seen)
    return _RUN.sub(lambda _: next(gaps), original)
