"""Other ways of writing a telephone number: models reformat what they are given."""

from collections.abc import Callable, Iterator
from typing import Final

import phonenumbers
from phonenumbers import PhoneNumberFormat

from privacy.restoration import Pair

_NORTH_AMERICA: Final = 1
_AREA_DIGITS: Final = 3
_NATIONAL_DIGITS: Final = 10

_Format = Callable[[phonenumbers.PhoneNumber], str]


def _styled(style: int) -> _Format:
    return lambda number: str(phonenumbers.format_number(number, style))


def _joined(style: int, joint: str) -> _Format:
    return lambda number: _styled(style)(number).replace(" ", joint)


_EVERYWHERE: Final = (
    _styled(PhoneNumberFormat.E164),
    *(
        _joined(style, joint)
        for style in (PhoneNumberFormat.INTERNATIONAL, PhoneNumberFormat.NATIONAL)
        for joint in (" ", "-", ".", "")
    ),
    lambda number: f"00{_joined(PhoneNumberFormat.INTERNATIONAL, ' ')(number)[1:]}",
    lambda number: f"00{_styled(PhoneNumberFormat.E164)(number)[1:]}",
)


def _separated(pattern: str) -> _Format:
    def write(number: phonenumbers.PhoneNumber) -> str:
        digits = phonenumbers.national_significant_number(number)
        middle = _AREA_DIGITS + 3
        return pattern.format(digits[:_AREA_DIGITS], digits[_AREA_DIGITS:middle], digits[middle:])

    return write


_IN_NORTH_AMERICA: Final = tuple(
    _separated(pattern)
    for pattern in (
        "{}-{}-{}", "{}.{}.{}", "{} {} {}", "({}) {}-{}", "{}{}{}", "1-{}-{}-{}", "+1 ({}) {}-{}",
        "+1 {}-{}-{}", "+1 {} {} {}", "+1-{}-{}-{}", "+1.{}.{}.{}",
    )
)  # fmt: skip


def phone_pairs(substitute: str, original: str) -> Iterator[Pair]:
    """Yield the usual formats of a surrogate number, each with the original in the same format.

    Nothing where the two are not numbers of one plan: what a reformatted one stands for is not guessed.
    """
    drawn, own = _number(substitute), _number(original)
    if drawn is None or own is None or drawn.country_code != own.country_code:
        return
    styles: tuple[_Format, ...] = _EVERYWHERE
    if drawn.country_code == _NORTH_AMERICA:
        national = map(phonenumbers.national_significant_number, (drawn, own))
        if all(len(digits) == _NATIONAL_DIGITS for digits in national):
            styles += _IN_NORTH_AMERICA
    for write in styles:
        yield Pair(write(drawn), write(own), "exact")


def _number(text: str) -> phonenumbers.PhoneNumber | None:
    """Return a number whose plan is certain: it has its country code, or ten digits as in the US."""
    try:
        number = phonenumbers.parse(text, None if text.lstrip("( ").startswith("+") else "US")
    except phonenumbers.NumberParseException:
        return None
    return number if phonenumbers.is_possible_number(number) and not number.extension else None
