"""Surrogates of national identity, tax and health numbers.

Letters and digits are drawn anew in their places until every check that the original passes is
passed again.  Where a country keeps numbers for tests they are used (NHS 999); elsewhere a valid
number may be somebody's, but it says nothing about the original, and no name goes with it.
"""

import re
from collections.abc import Callable
from typing import Final

from privacy.detection.recognizers import national_checks as known
from privacy.randomness import Randomness
from privacy.surrogates.base import DrawnSurrogate, SurrogateContext, redrawn, refill
from privacy.surrogates.checks import luhn, mod_11_10, verhoeff, weighted
from privacy.types import NATIONAL_ID

_TRIES: Final = 20_000
_NIF: Final = "TRWAGMYFPDXBNJZSQVHLCKE"
_HETU: Final = "0123456789ABCDEFHJKLMNPRSTUVWXY"
_DAY: Final = r"(?:0[1-9]|[12]\d|3[01])"
_MONTH: Final = r"(?:0[1-9]|1[0-2])"
_ITALIAN_ODD: Final = (
    1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23
)  # fmt: skip


def _nhs(number: str) -> bool:
    return weighted(number, (10, 9, 8, 7, 6, 5, 4, 3, 2, 1), 11)


def _nif(number: str) -> bool:
    return _NIF[int(number[:8]) % 23] == number[8]


def _nie(number: str) -> bool:
    return _nif(str("XYZ".index(number[0])) + number[1:])


def _hetu(number: str) -> bool:
    """The century sign is no letter in numbers from before 2023, so it may have been dropped."""
    return _HETU[int(number[:6] + number[-4:-1]) % 31] == number[-1]


def _pesel(number: str) -> bool:
    return weighted(number, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1), 10)


def _tfn(number: str) -> bool:
    return weighted(number, (1, 4, 3, 7, 5, 8, 6, 9, 10)[: len(number)], 11)


def _abn(number: str) -> bool:
    reduced = str(int(number[0]) - 1) + number[1:] if number[0] != "0" else "0"
    return len(reduced) == 11 and weighted(reduced, (10, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19), 89)


def _medicare_au(number: str) -> bool:
    total = sum(w * int(c) for w, c in zip((1, 3, 7, 9, 1, 3, 7, 9), number, strict=False))
    return total % 10 == int(number[8])


def _nric(number: str) -> bool:
    total = sum(w * int(c) for w, c in zip((2, 7, 6, 5, 4, 3, 2), number[1:8], strict=True))
    offset = 4 if number[0] in "TG" else 3 if number[0] == "M" else 0
    letters = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "KLJNPQRTUWX"}
    return letters.get(number[0], "XWUTRQPNMLK")[(total + offset) % 11] == number[8]


def _tckn(number: str) -> bool:
    odd, even = (sum(map(int, number[start:9:2])) for start in (0, 1))
    return (7 * odd - even) % 10 == int(number[9]) and sum(map(int, number[:10])) % 10 == int(
        number[10]
    )


def _thai(number: str) -> bool:
    total = sum((13 - i) * int(char) for i, char in enumerate(number[:12]))
    return (11 - total % 11) % 10 == int(number[12])


def _npi(number: str) -> bool:
    return luhn("80840" + number)


def _fiscal_code(number: str) -> bool:
    total = 0
    for place, char in enumerate(number[:15]):
        value = int(char) if char.isdigit() else ord(char) - ord("A")
        total += value if place % 2 else _ITALIAN_ODD[value]
    return chr(ord("A") + total % 26) == number[15]


def _personnummer(number: str) -> bool:
    return luhn(number[-10:])


def _rrn(number: str) -> bool:
    total = sum(
        w * int(c) for w, c in zip((2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), number, strict=False)
    )
    return (11 - total % 11) % 10 == int(number[12])


def _form_only(_: str) -> bool:
    return True


# (form without separators, check).  A number keeps whatever of these it satisfies.
_SCHEMES: Final[tuple[tuple[re.Pattern[str], Callable[[str], bool]], ...]] = tuple(
    (re.compile(form), check)
    for form, check in (
        (r"\d{10}", _nhs),
        (r"\d{8}[A-Z]", _nif),
        (r"[XYZ]\d{7}[A-Z]", _nie),
        (rf"{_DAY}{_MONTH}\d\d[A-FU-Y]?\d{{3}}[0-9A-Y]", _hetu),
        (rf"\d\d(?:[02468][1-9]|[13579][0-2]){_DAY}\d{{5}}", _pesel),
        (r"\d{9}", _tfn),
        (r"[1-9]\d{10}", _abn),
        (r"[2-6]\d{9,10}", _medicare_au),
        (r"[2-9]\d{11}", verhoeff),
        (r"[STFGM]\d{7}[A-Z]", _nric),
        (r"[1-9]\d{10}", _tckn),
        (r"[1-9]\d{10}", mod_11_10),
        (r"[1-8]\d{12}", _thai),
        (r"[12]\d{9}", _npi),
        (r"[A-Z]{6}\d\d[ABCDEHLMPRST](?:[04][1-9]|[1256]\d|[37][01])[A-Z]\d{3}[A-Z]",
         _fiscal_code),
        (rf"(?:\d\d)?\d\d{_MONTH}{_DAY}\d{{4}}", _personnummer),
        (rf"\d\d{_MONTH}{_DAY}[0-5]\d{{4}}[01]\d\d", luhn),
        (rf"\d\d{_MONTH}{_DAY}[1-8]\d{{6}}", _rrn),
        (r"[1-79]\d{8}", luhn),
        (r"\d{11}", luhn),
        (r"\d{11}", known.brazil_cpf),
        (rf"[12]\d\d{_MONTH}\d{{10}}", known.france_nir),
        (r"\d{9}", known.netherlands_bsn),
        (r"756\d{10}", known.switzerland_ahv),
        (rf"\d\d{_MONTH}{_DAY}\d{{5}}", known.belgium_nn),
        (r"\d{7,8}[0-9K]", known.chile_rut),
        (r"(?!BG|GB|NK|KN|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]\d{6}[A-D]", _form_only),
        (r"9\d\d(?:5\d|6[0-5]|7\d|8[0-8]|9[0-2]|9[4-9])\d{4}", _form_only),
        (r"[A-Z]{3}[ABCFGHLJPT][A-Z]\d{4}[A-Z]", _form_only),
        (r"[1-9][AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9]\d[AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9]\d"
         r"[AC-HJKMNP-RT-Y]{2}\d\d", _form_only),
    )
)  # fmt: skip


# What is drawn is narrower than what is recognised: days that every month has, names of consonants.
_EVERY_DAY: Final = r"(?:0[1-9]|1\d|2[0-8])"
_PLAUSIBLE: Final[dict[Callable[[str], bool], re.Pattern[str]]] = {
    _hetu: re.compile(rf"{_EVERY_DAY}.*"),
    _pesel: re.compile(rf"\d{{4}}{_EVERY_DAY}.*"),
    _rrn: re.compile(rf"\d{{4}}{_EVERY_DAY}.*"),
    _personnummer: re.compile(rf"(?:\d\d)?\d{{4}}{_EVERY_DAY}\d{{4}}"),
    known.belgium_nn: re.compile(rf"\d{{4}}{_EVERY_DAY}.*"),
    _fiscal_code: re.compile(r"[B-DF-HJ-NP-TV-Z]{6}\d\d.(?:[04][1-9]|[15]\d|[26][0-8])[A-L].*"),
}


class NationalIdSurrogate(DrawnSurrogate):
    """Keeps separators, the places of letters and digits, and the checks the original passes."""

    type = NATIONAL_ID

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        compact = "".join(char for char in original.upper() if char.isalnum())
        if not compact.isascii():
            return redrawn(original, rng)
        schemes = [scheme for scheme in _SCHEMES if _passes(compact, scheme)]
        # Of checks over bare digits one in ten passes by chance; then the first few suffice.
        wanted = schemes[:3]
        is_nhs = [check for _, check in wanted] == [_nhs]
        for _ in range(_TRIES):
            drawn = redrawn(compact, rng)
            if is_nhs:
                drawn = "999" + drawn[3:]
            drawn = _with_fixed_places(compact, drawn, wanted)
            if all(_passes(drawn, scheme) and _plausible(drawn, scheme) for scheme in wanted):
                return refill(original, drawn.lower() if original.islower() else drawn)
        return redrawn(original, rng)


def _passes(number: str, scheme: tuple[re.Pattern[str], Callable[[str], bool]]) -> bool:
    form, check = scheme
    return form.fullmatch(number) is not None and check(number)


def _plausible(number: str, scheme: tuple[re.Pattern[str], Callable[[str], bool]]) -> bool:
    form = _PLAUSIBLE.get(scheme[1])
    return form is None or form.fullmatch(number) is not None


def _with_fixed_places(
    compact: str, drawn: str, wanted: list[tuple[re.Pattern[str], Callable[[str], bool]]]
) -> str:
    """Put back what is the same in every number of a scheme, such as a country's code."""
    checks = {check for _, check in wanted}
    if known.switzerland_ahv in checks:
        return "756" + drawn[3:]
    if checks & {_nric, _nie, _hetu, _form_only} and not compact[0].isdigit():
        return compact[0] + drawn[1:]
    return drawn
