"""Cards, accounts, identity numbers, records, wallets, secrets."""

import hashlib
import re

import pytest

from privacy.randomness import SeededRandomness
from privacy.surrogates import SurrogateContext, surrogate_for
from privacy.surrogates.checks import iban_valid, luhn, mod_11_10, verhoeff


def draws(type_: str, value: str, count: int = 40) -> list[str]:
    rng = SeededRandomness(11)
    return [surrogate_for(type_).make(value, rng, SurrogateContext()) for _ in range(count)]


def pattern(text: str) -> str:
    """Digits as 0, letters as a or A."""
    return re.sub("[A-Z]", "A", re.sub("[a-z]", "a", re.sub(r"\d", "0", text)))


def test_checks_know_published_numbers() -> None:
    assert luhn("4111111111111111") and not luhn("4111111111111112")
    assert iban_valid("GB29NWBK60161331926819") and not iban_valid("GB30NWBK60161331926819")
    assert verhoeff("2363") and not verhoeff("2364")
    assert mod_11_10("07945") and not mod_11_10("07946")


@pytest.mark.parametrize(
    ("value", "prefixes"),
    [
        ("4539 1488 0343 6467", ("4000", "4111", "4242")),
        ("5425-2334-3010-9903", ("5555", "5105")),
        ("2720992593714203", ("2223",)),
        ("378734493671000", ("3782", "3714", "3787")),
        ("6011 0009 9013 9424", ("6011",)),
        ("30569309025904", ("3056",)),
        ("3530111333300000", ("3566", "3530")),
        ("6250941006528599", ("6200",)),
        ("4222222222222", ("4000", "4111", "4242")),
        ("9111111111111111", ("9000",)),
    ],
)
def test_cards(value: str, prefixes: tuple[str, ...]) -> None:
    for drawn in draws("CREDIT_CARD", value):
        assert pattern(drawn) == pattern(value)
        compact = re.sub(r"\D", "", drawn)
        assert compact.startswith(prefixes)
        total = sum(sum(divmod(int(c) * (1 + i % 2), 10)) for i, c in enumerate(reversed(compact)))
        assert total % 10 == 0


@pytest.mark.parametrize(
    ("value", "start"),
    [
        ("DE89 3704 0044 0532 0130 00", r"DE\d\d 0000 0000 "),
        ("GB29NWBK60161331926819", r"GB\d\dXXXX"),
        ("FR1420041010050500013M02606", r"FR\d\d00000"),
        ("NL91 ABNA 0417 1643 00", r"NL\d\d XXXX "),
        ("be68539007547034", r"be\d\d000"),
        ("IT60X0542811101000000123456", r"IT\d\dX00000"),
    ],
)
def test_ibans(value: str, start: str) -> None:
    for drawn in draws("IBAN", value):
        assert pattern(drawn) == pattern(value)
        assert re.match(start, drawn)
        compact = re.sub(r"\W", "", drawn).upper()
        number = "".join(str(int(c, 36)) for c in compact[4:] + compact[:4])
        assert int(number) % 97 == 1
        if compact.startswith("BE"):
            assert int(compact[4:14]) % 97 != int(compact[14:]) % 97


def test_bank_accounts() -> None:
    for drawn in draws("BANK_ACCOUNT", "021000021"):
        assert drawn.startswith("19")
        weights = (3, 7, 1) * 3
        assert sum(w * int(c) for w, c in zip(weights, drawn, strict=True)) % 10 == 0
    for drawn in draws("BANK_ACCOUNT", "12-3456-789"):
        assert pattern(drawn) == "00-0000-000"


@pytest.mark.parametrize("value", ["536-22-8714", "536 22 8714", "536228714"])
def test_social_security_numbers(value: str) -> None:
    for drawn in draws("US_SSN", value):
        assert pattern(drawn) == pattern(value)
        compact = re.sub(r"\D", "", drawn)
        assert compact[0] == "9" and 1 <= int(compact[3:5]) <= 49 and compact[5:] != "0000"


def test_verification_codes() -> None:
    assert all(re.fullmatch(r"\d{3}", drawn) for drawn in draws("CVC", "731"))
    assert len(set(draws("CVC", "7310"))) > 30


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("MED-88231", r"MED-[1-9]\d{4}"),
        ("EMP_00412", r"EMP_\d{5}"),
        ("77-1234-X", r"[1-9]\d-[1-9]\d{3}-[A-Z]"),
        ("ab12Cd", r"ab[1-9]\d[A-Z][a-z]"),
        ("ABCDEF", r"[A-Z]{6}"),
    ],
)
def test_record_ids(value: str, form: str) -> None:
    for drawn in draws("RECORD_ID", value):
        assert re.fullmatch(form, drawn), drawn


def test_base58_wallets() -> None:
    for drawn in draws("CRYPTO_WALLET", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"):
        assert re.fullmatch(r"1[1-9A-HJ-NP-Za-km-z]{25,33}", drawn)
        value = 0
        for char in drawn:
            value = value * 58 + "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".index(
                char
            )
        data = value.to_bytes(25)
        check = hashlib.sha256(hashlib.sha256(data[:21]).digest()).digest()[:4]
        assert data[21:] == check
        assert data[5:13] == bytes(8)
    assert all(
        d.startswith("3") for d in draws("CRYPTO_WALLET", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy", 5)
    )


def test_hexadecimal_wallets() -> None:
    for drawn in draws("CRYPTO_WALLET", "0x52908400098527886E0F7030069857D2E4169EE7"):
        assert re.fullmatch(r"0x[0-9a-f]{8}0{16}[0-9a-f]{16}", drawn)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("sk-proj-abcDEF123abcDEF123abcDEF", r"sk-proj-[A-Za-z0-9]{17}EXAMPLE"),
        ("AKIAIOSFODNN7ABCDEFG", r"AKIA[A-Z0-9]{9}EXAMPLE"),
        ("ghp_" + "a1B2" * 9, r"ghp_[A-Za-z0-9]{29}EXAMPLE"),
        ("d41d8cd98f00b204e9800998ecf8427e", r"[0-9a-f]{24}0{8}"),
        (
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc_DEF-12",
            r"eyJ\w+\.eyJ\w+\.\w{3}_\w{3}-\w\w",
        ),
        ("Tr0ub4dor&3", r"[A-Z][a-z]\d[a-z]{2}\d[a-z]{3}[!#$%*+\-.=?@_]\d"),
        ("1234", r"\d{4}"),
    ],
)
def test_secrets(value: str, form: str) -> None:
    for drawn in draws("SECRET", value):
        assert re.fullmatch(form, drawn), drawn
        assert len(drawn) == len(value)


def test_private_key_blocks_keep_their_frame() -> None:
    frame = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----")
    block = f"{frame[0]}\nMIIEvQIBADANBgkq+/abc\nhkiG9w0BAQE=\n{frame[1]}"
    for drawn in draws("SECRET", block, 5):
        lines, original = drawn.split("\n"), block.split("\n")
        assert (lines[0], lines[-1]) == (original[0], original[-1])
        assert [len(line) for line in lines] == [len(line) for line in original]
        assert lines[1] != original[1] and "MIIE" not in drawn


NATIONAL = [
    ("943 476 5919", r"999 \d{3} \d{4}"),
    ("12345678Z", r"\d{8}[A-Z]"),
    ("X1234567L", r"X\d{7}[A-Z]"),
    ("RSSMRA85T10A562S", r"[A-Z]{6}\d\d[A-Z]\d\d[A-Z]\d{3}[A-Z]"),
    ("44051401359", r"\d{11}"),
    ("131052-308T", r"\d{6}-\d{3}[A-Z]"),
    ("AB 12 34 56 C", r"[A-Z]{2} \d\d \d\d \d\d [A-D]"),
    ("S1234567D", r"S\d{7}[A-Z]"),
    ("756.9217.0769.85", r"756\.\d{4}\.\d{4}\.\d\d"),
    ("2341 2341 2346", r"\d{4} \d{4} \d{4}"),
    ("123.456.789-09", r"\d{3}\.\d{3}\.\d{3}-\d\d"),
    ("811228-9874", r"\d{6}-\d{4}"),
    ("not-a-number-7", r"[a-z]{3}-[a-z]-[a-z]{6}-\d"),
]


@pytest.mark.parametrize(("value", "form"), NATIONAL)
def test_national_ids_keep_their_form(value: str, form: str) -> None:
    for drawn in draws("NATIONAL_ID", value, 5):
        assert re.fullmatch(form, drawn), drawn


def test_national_ids_keep_their_check() -> None:
    nif = "TRWAGMYFPDXBNJZSQVHLCKE"
    assert all(nif[int(d[:8]) % 23] == d[8] for d in draws("NATIONAL_ID", "12345678Z", 10))
    for drawn in draws("NATIONAL_ID", "44051401359", 3):
        weights = (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)
        assert sum(w * int(c) for w, c in zip(weights, drawn, strict=True)) % 10 == 0
        assert 1 <= int(drawn[2:4]) % 20 <= 12 and 1 <= int(drawn[4:6]) <= 31
    for drawn in draws("NATIONAL_ID", "943 476 5919", 10):
        digits = [int(c) for c in drawn if c.isdigit()]
        assert sum((10 - i) * d for i, d in enumerate(digits)) % 11 == 0
    for drawn in draws("NATIONAL_ID", "2341 2341 2346", 10):
        assert verhoeff(drawn.replace(" ", "")) == verhoeff("234123412346")
