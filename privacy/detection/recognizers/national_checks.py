"""Check digits of national identity numbers that presidio does not cover."""

from itertools import pairwise


def brazil_cpf(digits: str) -> bool:
    """CPF: two digits mod 11 over 11 digits (Receita Federal)."""
    if len(digits) != 11 or all(a == b for a, b in pairwise(digits)):
        return False
    for length in (9, 10):
        total = sum(int(digit) * (length + 1 - i) for i, digit in enumerate(digits[:length]))
        if total * 10 % 11 % 10 != int(digits[length]):
            return False
    return True


def france_nir(digits: str) -> bool:
    """NIR: 13 digits and a key of 97 minus the number modulo 97 (INSEE)."""
    return len(digits) == 15 and 97 - int(digits[:13]) % 97 == int(digits[13:])


def netherlands_bsn(digits: str) -> bool:
    """BSN: the eleven test, weights 9 to 2 and minus 1 (Rijksdienst voor Identiteitsgegevens)."""
    if len(digits) != 9 or int(digits) == 0:
        return False
    weights = (9, 8, 7, 6, 5, 4, 3, 2, -1)
    return sum(w * int(digit) for w, digit in zip(weights, digits, strict=True)) % 11 == 0


def switzerland_ahv(digits: str) -> bool:
    """AHV number: 756 and an EAN-13 check digit (Zentrale Ausgleichsstelle)."""
    if len(digits) != 13 or not digits.startswith("756"):
        return False
    total = sum(int(digit) * (3 if i % 2 else 1) for i, digit in enumerate(digits[:12]))
    return (10 - total % 10) % 10 == int(digits[12])


def belgium_nn(digits: str) -> bool:
    """National register number: 97 minus the number modulo 97; 2 before it for births from 2000."""
    if len(digits) != 11:
        return False
    check = int(digits[9:])
    return check in (97 - int(digits[:9]) % 97, 97 - int("2" + digits[:9]) % 97)


def chile_rut(value: str) -> bool:
    """RUT: body and a mod 11 check character, K for ten (Servicio de Impuestos Internos)."""
    body, check = value[:-1], value[-1].upper()
    if not 7 <= len(body) <= 8 or not body.isdigit():
        return False
    total = sum(int(digit) * (2 + i % 6) for i, digit in enumerate(reversed(body)))
    remainder = 11 - total % 11
    return check == {11: "0", 10: "K"}.get(remainder, str(remainder))


def germany_tax(digits: str) -> bool:
    """Identifikationsnummer: eleven digits, ISO 7064 MOD 11,10 (Bundeszentralamt für Steuern)."""
    if len(digits) != 11 or digits[0] == "0":
        return False
    product = 10
    for digit in digits[:10]:
        product = ((int(digit) + product - 1) % 10 + 1) * 2 % 11
    return (11 - product) % 10 == int(digits[10])
