"""Other ways of writing a number or an address: models regroup cards and quote a mail's domain."""

import re
from collections.abc import Iterator
from typing import Final

from privacy.restoration import Pair
from privacy.types import BANK_ACCOUNT, CREDIT_CARD, EMAIL, IBAN, NATIONAL_ID, US_SSN

_REGROUPED: Final = frozenset((CREDIT_CARD, IBAN, US_SSN, NATIONAL_ID, BANK_ACCOUNT))
_SEPARATOR: Final = re.compile(r"[\s.\-/_\u2010-\u2015]+")
_LEAST: Final = 8
_GROUPS: Final = {US_SSN: (3, 2, 4)}
_LAST: Final = 4
# What stands before the last four digits where the others are left out.
_LEFT_OUT: Final = (
    "ending in ",
    "ending with ",
    "ends in ",
    "ends with ",
    "last four digits ",
    "last four digits are ",
    "last 4 digits ",
    "*",
    "* ",
    "*-",
    "•",
    "• ",
    "xx-",
    "XX-",
    "xxxx",
    "XXXX",
    "xxxx ",
    "XXXX ",
    "xxxx-",
    "XXXX-",
    "...",
    "…",
)  # fmt: skip
# "**2024 in figures**", "the year ending in 2024": before a year these alone speak of digits.
_LEFT_OUT_OF_ANY: Final = tuple(before for before in _LEFT_OUT if before[0] in "xX•")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_LEAST_LOCAL: Final = 5


def number_pairs(kind: str, substitute: str, original: str) -> Iterator[Pair]:
    """Yield the usual groupings of a surrogate and its last digits, each with the original's.

    Of an e-mail address, what stands before and behind its at sign.
    """
    if kind == EMAIL:
        yield from _parts(substitute, original)
    if kind not in _REGROUPED:
        return
    drawn, own = _SEPARATOR.sub("", substitute), _SEPARATOR.sub("", original)
    if len(drawn) != len(own) or len(drawn) < _LEAST or not (drawn + own).isalnum():
        return
    yield Pair(drawn, own, "exact")
    for joint in (" ", "-"):
        yield Pair(_grouped(drawn, kind, joint), _grouped(own, kind, joint), "exact")
    if kind != NATIONAL_ID:
        for before in _LEFT_OUT if not _YEAR.fullmatch(drawn[-_LAST:]) else _LEFT_OUT_OF_ANY:
            yield Pair(f"{before}{drawn[-_LAST:]}", f"{before}{own[-_LAST:]}", "exact")


def _grouped(digits: str, kind: str, joint: str) -> str:
    sizes = _GROUPS.get(kind) or (4,) * -(-len(digits) // 4)
    if sum(sizes) < len(digits):
        return digits
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return joint.join(digits[end - size : end] for size, end in zip(sizes, ends, strict=True))


def _parts(substitute: str, original: str) -> Iterator[Pair]:
    drawn, own = substitute.split("@"), original.split("@")
    if len(drawn) != 2 or len(own) != 2 or not all((*drawn, *own)):
        return
    yield Pair(drawn[1], own[1], "exact")
    if len(drawn[0]) >= _LEAST_LOCAL:
        yield Pair(drawn[0], own[0], "exact")
