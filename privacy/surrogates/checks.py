"""Check digits that surrogates have to satisfy."""

from typing import Final


def luhn(number: str) -> bool:
    """Luhn check (ISO/IEC 7812-1, annex B) over all digits of ``number``."""
    return luhn_digit(number[:-1]) == number[-1:]


def luhn_digit(body: str) -> str:
    """Return the Luhn check digit that follows ``body``."""
    total = 0
    for place, char in enumerate(reversed(body)):
        value = int(char) * (1 + (place + 1) % 2)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


def iban_check(country: str, account: str) -> str:
    """Return the two check digits of an IBAN (ISO 13616-1, ISO/IEC 7064 mod 97-10)."""
    return f"{98 - _mod97(account + country + '00'):02d}"


def iban_valid(compact: str) -> bool:
    """Say whether an IBAN without blanks passes mod 97-10."""
    return _mod97(compact[4:] + compact[:4]) == 1


def _mod97(text: str) -> int:
    return int("".join(str(int(char, 36)) for char in text)) % 97


# Multiplication of the dihedral group D5 and the permutation of Verhoeff's scheme (1969).
_PERMUTATION: Final = (1, 5, 7, 6, 2, 8, 3, 0, 9, 4)


def _d5(a: int, b: int) -> int:
    if a < 5:
        return (a + b) % 5 + (5 if b >= 5 else 0)
    return (a - b) % 5 + (0 if b >= 5 else 5)


def verhoeff(number: str) -> bool:
    """Verhoeff's check over all digits of ``number``."""
    state = 0
    for place, char in enumerate(reversed(number)):
        value = int(char)
        for _ in range(place % 8):
            value = _PERMUTATION[value]
        state = _d5(state, value)
    return state == 0


def weighted(number: str, weights: tuple[int, ...], modulus: int) -> bool:
    """Say whether the weighted digit sum is a multiple of ``modulus``."""
    return sum(w * int(c) for w, c in zip(weights, number, strict=True)) % modulus == 0


def mod_11_10(number: str) -> bool:
    """ISO/IEC 7064 mod 11,10 over all digits of ``number``."""
    product = 10
    for char in number[:-1]:
        total = (int(char) + product) % 10 or 10
        product = total * 2 % 11
    return (11 - product) % 10 == int(number[-1])
