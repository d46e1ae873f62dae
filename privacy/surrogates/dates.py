"""Dates moved by the session's shift, in the form they were written in.

All dates of a session move by the same number of days (drawn from a discrete Laplace distribution,
see the mechanism), so intervals stay true.  A weekday that stands with the date moves as far.
"""

import datetime as dt
import re
from typing import Final

from privacy.randomness import Randomness
from privacy.surrogates.base import (
    DrawnSurrogate,
    SurrogateContext,
    SurrogateExhausted,
    SurrogateUnsupported,
)
from privacy.surrogates.date_words import MONTH_PATTERN, WEEKDAY_PATTERN, month_of, weekday_of
from privacy.types import DATE

_WEEKDAY: Final = rf"(?:(?P<wd>{WEEKDAY_PATTERN})(?:\.?,?\s+))?"
_ORDINAL: Final = r"(?P<ord>st|nd|rd|th|er|\.|º|ª)?"
_TAIL: Final = r"(?P<tail>[T ]\d{1,2}:\d{2}.*)?\Z"
_FORMS: Final = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        # 2024-02-17, 2024/2/17, 2024.02.17
        rf"{_WEEKDAY}(?P<y>\d{{4}})(?P<s>[-/.])(?P<m>\d{{1,2}})(?P=s)(?P<d>\d{{1,2}}){_TAIL}",
        # 20240217
        r"(?P<y>(?:18|19|20)\d{2})(?P<m>\d{2})(?P<d>\d{2})(?P<tail>T\d{4,6}Z?)?\Z",
        # 17/02/1984, 2/17/84, 17.02.84, 17-02-1984, and with blanks behind the dots
        rf"{_WEEKDAY}(?P<a>\d{{1,2}})(?P<s>[-/.])\s?(?P<b>\d{{1,2}})(?P=s)\s?(?P<y>\d{{4}}|\d{{2}}){_TAIL}",
        # 17 February 1984, 17th of Feb, 17. Februar 1984, 17 de febrero de 1984, 17-Feb-84
        rf"{_WEEKDAY}(?P<d>\d{{1,2}}){_ORDINAL}[\s-]+(?:of\s+|de\s+)?(?P<mon>{MONTH_PATTERN})\.?"
        rf"(?:,?[\s-]+(?:de[l]?\s+)?(?P<y>\d{{4}}|\d{{2}}))?{_TAIL}",
        # February 17, 1984; Feb. 17th
        rf"{_WEEKDAY}(?P<mon>{MONTH_PATTERN})\.?\s+(?P<d>\d{{1,2}}){_ORDINAL}(?:,?\s+(?P<y>\d{{4}}))?{_TAIL}",
        # 1984. február 17.
        rf"(?P<y>\d{{4}})\.?\s+(?P<mon>{MONTH_PATTERN})\s+(?P<d>\d{{1,2}})\.?\Z",
        # 1984年2月17, 1984년 2월 17: what follows in the same script is no border of a word
        r"(?P<y>\d{4})[年년]\s?(?P<m>\d{1,2})[月월]\s?(?P<d>\d{1,2})\Z",
        # February 1984
        rf"(?P<mon>{MONTH_PATTERN})\.?,?\s+(?:de\s+)?(?P<y>\d{{4}})\Z",
        # 02/1984, 1984-02
        r"(?P<m>\d{1,2})(?P<s>[/.-])(?P<y>\d{4})\Z",
        r"(?P<y>\d{4})(?P<s>[/.-])(?P<m>\d{1,2})\Z",
    )
)
# A date without a year is moved within a leap year, so that 29 February exists.
_NO_YEAR: Final = 2000
# Two-digit years up to this one belong to this century.
_PIVOT: Final = 49
# The middle of a month stands for a month without a day.
_NO_DAY: Final = 15


def shift_date(text: str, days: int, *, day_first: bool = False) -> str | None:
    """Return the date ``text`` moved by ``days`` days in the same form, or None when unreadable.

    Args:
        text: A date: year first, day or month first, or with the month as a word (of the
            languages in `date_words`), perhaps with a weekday or a time of day.
        days: How far; negative for earlier.
        day_first: How to read a date such as 02/03/1984 that may be either; with dots or hyphens
            the day always comes first.
    """
    for form in _FORMS:
        found = form.match(text)
        if found is not None:
            return _shifted(found, days, day_first)
    return None


def _shifted(found: re.Match[str], days: int, day_first: bool) -> str | None:
    names = found.re.groupindex
    order = "ab"
    if "a" in names:
        order = "dm" if _day_comes_first(found, day_first) else "md"
    spans = {}
    for name in names:
        if found.group(name) is not None:
            key = order["ab".index(name)] if name in ("a", "b") else name
            spans[key] = found.span(name)
    text = found.string
    try:
        old = _read(text, spans)
        new = old + dt.timedelta(days=days)
    except (ValueError, OverflowError):
        return None
    if "d" not in spans and (old.year, old.month) == (new.year, new.month) and days:
        new = (
            (old.replace(day=1) - dt.timedelta(1))
            if days < 0
            else old.replace(day=28) + dt.timedelta(4)
        )
    return _written(text, spans, new, days)


def _day_comes_first(found: re.Match[str], day_first: bool) -> bool:
    first, second = int(found.group("a")), int(found.group("b"))
    if first > 12 or second > 12:
        return first > 12
    return day_first or found.group("s") != "/"


def _read(text: str, spans: dict[str, tuple[int, int]]) -> dt.date:
    fields = {name: text[start:end] for name, (start, end) in spans.items()}
    year = _NO_YEAR
    if "y" in fields:
        year = int(fields["y"])
        if len(fields["y"]) == 2:
            year += 2000 if year <= _PIVOT else 1900
    month = month_of(fields["mon"]).number if "mon" in fields else int(fields["m"])
    return dt.date(year, month, int(fields.get("d", _NO_DAY)))


def _written(text: str, spans: dict[str, tuple[int, int]], new: dt.date, days: int) -> str:
    """Write ``new`` over the fields of ``text``."""
    fields = {name: text[start:end] for name, (start, end) in spans.items()}
    numbers = [fields[name] for name in ("d", "m") if name in fields]
    # "17" alone does not tell whether days are padded; then a month that is does, or words do not.
    padded = any(n.startswith("0") for n in numbers) or (
        all(len(n) == 2 for n in numbers) and "mon" not in fields
    )
    width = 2 if padded else 1
    parts = {"d": f"{new.day:0{width}d}", "m": f"{new.month:0{width}d}", "y": f"{new.year:04d}"}
    if "y" in fields:
        parts["y"] = parts["y"][-len(fields["y"]) :]
    if "mon" in fields:
        # "17. April" is German, where February is called Februar.
        month = month_of(fields["mon"], german=fields.get("ord") == ".")
        parts["mon"] = month.same_form(new.month, fields["mon"])
    if "wd" in fields:
        # Counted from the weekday that is written, so that a wrong one stays as wrong.
        old = weekday_of(fields["wd"])
        parts["wd"] = old.same_form((old.number - 1 + days) % 7 + 1, fields["wd"])
    if "ord" in fields:
        parts["ord"] = _ordinal(fields["ord"], new.day)
    out = text
    for name, (start, end) in sorted(spans.items(), key=lambda item: -item[1][0]):
        if name in parts:
            out = out[:start] + parts[name] + out[end:]
    return out


def _ordinal(old: str, day: int) -> str:
    if old.lower() not in ("st", "nd", "rd", "th"):
        return "" if old.lower() == "er" and day != 1 else old
    suffix = "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return suffix.upper() if old.isupper() else suffix


class DateSurrogate(DrawnSurrogate):
    """The date moved by the session's shift; there is nothing to draw."""

    type = DATE

    def make(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        """Return the moved date.

        Raises:
            SurrogateUnsupported: When the date cannot be read.
            SurrogateExhausted: When the session's shift is zero days.
        """
        if context.day_shift == 0:
            raise SurrogateExhausted("the session's date shift is zero days: draw another one")
        moved = shift_date(original, context.day_shift, day_first=context.day_first)
        if moved is None or moved == original:
            raise SurrogateUnsupported(
                "a date in a form that cannot be moved: use a placeholder for it"
            )
        return moved
