"""Financial, national and record identifiers, dates, amounts and addresses, by table."""

import pytest

from privacy.detection.base import Recognizer
from privacy.detection.recognizers import national_checks as checks
from privacy.detection.recognizers.address import AddressRecognizer
from privacy.detection.recognizers.amount import AmountRecognizer
from privacy.detection.recognizers.bank_account import BankAccountRecognizer
from privacy.detection.recognizers.credit_card import CreditCardRecognizer
from privacy.detection.recognizers.crypto import CryptoRecognizer
from privacy.detection.recognizers.cvc import CvcRecognizer
from privacy.detection.recognizers.date import DateRecognizer
from privacy.detection.recognizers.iban import IbanRecognizer
from privacy.detection.recognizers.medical_licence import MedicalLicenceRecognizer
from privacy.detection.recognizers.national_id import NationalIdRecognizer
from privacy.detection.recognizers.record_id import RecordIdRecognizer
from privacy.detection.recognizers.us_ssn import UsSsnRecognizer
from privacy.detection.resolve import resolve


def surfaces(recognizer: Recognizer, text: str, least: float = 0.5) -> list[str]:
    """Return what is found, overlaps of one recognizer united."""
    spans = [s for s in recognizer.find(text) if s.score >= least]
    return [text[s.start : s.end] for s in resolve(text, spans)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Card 4111 1111 1111 1111,", ["4111 1111 1111 1111"]),
        ("4111111111111111", ["4111111111111111"]),
        ("5500-0000-0000-0004", ["5500-0000-0000-0004"]),
        ("2223 0031 2200 3222", ["2223 0031 2200 3222"]),
        ("amex 3782 822463 10005", ["3782 822463 10005"]),
        ("6011000990139424", ["6011000990139424"]),
        ("3530111333300000", ["3530111333300000"]),
        ("card no 180051662803027", ["180051662803027"]),
        ("4111 1111 1111 1112", []),
        ("1234567812345670", []),
        ("20261130081502", []),
        ("db/migrate/20261130081502_add_users.sql", []),
        ("4111111111111111_000", []),
        ("0.4111111111111111", []),
    ],
)
def test_credit_card(text: str, found: list[str]) -> None:
    assert surfaces(CreditCardRecognizer(), text) == found


def test_near_valid_card_scores_below_a_valid_one() -> None:
    near = CreditCardRecognizer().find("visa: 4111 1111 1111 1113")
    valid = CreditCardRecognizer().find("pay 4111 1111 1111 1111")
    assert near and all(0.5 <= span.score < 0.9 for span in near)
    assert [span.score >= 0.9 for span in valid] == [True]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("and CVC 731", ["731"]),
        ("cvv2: 0123", ["0123"]),
        ("security code is 731.", ["731"]),
        ("card verification value (731)", ["731"]),
        ("CVC 73151", []),
        ("page 731", []),
    ],
)
def test_cvc(text: str, found: list[str]) -> None:
    assert surfaces(CvcRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("DE89 3704 0044 0532 0130 00 please", ["DE89 3704 0044 0532 0130 00"]),
        ("DE89370400440532013000 or", ["DE89370400440532013000"]),
        ("gb82 west 1234 5698 7654 32 x", ["gb82 west 1234 5698 7654 32"]),
        (
            "DE89370400440532013000 or GB82 WEST 1234 5698 7654 32",
            ["DE89370400440532013000", "GB82 WEST 1234 5698 7654 32"],
        ),
        ("IBAN: DE89 3704 0044 0532 0130 01", ["DE89 3704 0044 0532 0130 01"]),
        ("ref DE89 3704 0044 0532 0130 01", []),
        ("AB12 this is not one", []),
    ],
)
def test_iban(text: str, found: list[str]) -> None:
    assert surfaces(IbanRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("account no. 12345678", ["12345678"]),
        ("sort code 20-00-00", ["20-00-00"]),
        ("routing 021000021", ["021000021"]),
        ("BIC: DEUTDEFF500", ["DEUTDEFF500"]),
        ("routing 021000022", []),
        ("12345678", []),
        ("account closed", []),
    ],
)
def test_bank_account(text: str, found: list[str]) -> None:
    assert surfaces(BankAccountRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("to 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2.", ["1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"]),
        (
            "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
            ["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"],
        ),
        (
            "0x52908400098527886E0F7030069857D2E4169EE7",
            ["0x52908400098527886E0F7030069857D2E4169EE7"],
        ),
        ("1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3", []),
        ("0xdeadbeef", []),
    ],
)
def test_crypto(text: str, found: list[str]) -> None:
    assert surfaces(CryptoRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SSN 536-22-8714", ["536-22-8714"]),
        ("536-22-8714", ["536-22-8714"]),
        ("social security number 536228714", ["536228714"]),
        ("SSN: 000-12-3456", ["000-12-3456"]),
        ("123-45-6789", ["123-45-6789"]),
        ("536228714", []),
        ("536.22.8714", []),
        ("SKU 536804398", []),
        ("2024-10-1234", []),
    ],
)
def test_us_ssn(text: str, found: list[str]) -> None:
    assert surfaces(UsSsnRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("codice fiscale RSSMRA85T10A562S", ["RSSMRA85T10A562S"]),
        ("NIF 12345678Z", ["12345678Z"]),
        ("X1234567L", ["X1234567L"]),
        ("NINO AB 12 34 56 C", ["AB 12 34 56 C"]),
        ("131052-308T", ["131052-308T"]),
        ("PESEL 44051401359", ["44051401359"]),
        ("CPF 111.444.777-35", ["111.444.777-35"]),
        ("NHS number 943 476 5919", ["943 476 5919"]),
        ("AHV 756.9217.0769.85", ["756.9217.0769.85"]),
        ("2 69 05 49 588 157 80", ["2 69 05 49 588 157 80"]),
        ("BSN 111222333", ["111222333"]),
        ("12.345.678-5", ["12.345.678-5"]),
        ("SIN 046-454-286", []),
        ("SIN 130-692-544", ["130-692-544"]),
        ("PAN ABCPE1234F", ["ABCPE1234F"]),
        ("NIF 12345678A", []),
        ("44051401359", []),
        ("111222333", []),
        ("111.444.777-36", []),
        ("build 12345678901", []),
        ("Steuer-ID 86 095 742 719", ["86 095 742 719"]),
        ("86 095 742 718 pieces", []),
    ],
)
def test_national_id(text: str, found: list[str]) -> None:
    assert surfaces(NationalIdRecognizer(), text) == found


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (checks.brazil_cpf, "11144477735", "11144477736"),
        (checks.france_nir, "269054958815780", "269054958815781"),
        (checks.netherlands_bsn, "111222333", "111222334"),
        (checks.switzerland_ahv, "7569217076985", "7569217076986"),
        (checks.belgium_nn, "85073003328", "85073003329"),
        (checks.chile_rut, "123456785", "123456786"),
        (checks.germany_tax, "86095742719", "86095742718"),
    ],
)
def test_check_digits(check, good: str, bad: str) -> None:  # type: ignore[no-untyped-def]
    assert check(good)
    assert not check(bad)
    assert not check("1")


def test_degenerate_numbers_fail_their_checks() -> None:
    assert not checks.brazil_cpf("11111111111")
    assert not checks.netherlands_bsn("000000000")
    assert not checks.switzerland_ahv("1234567890123")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("DEA AB1234563", ["AB1234563"]),
        ("DEA AB1234564", []),
        ("XAB1234563", []),
    ],
)
def test_medical_licence(text: str, found: list[str]) -> None:
    assert surfaces(MedicalLicenceRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("licence MED-88231, holder", ["MED-88231"]),
        ("EMP-00412 reports", ["EMP-00412"]),
        ("Policy no. 77-1234-X", ["77-1234-X"]),
        ("passport number C01X00T47", ["C01X00T47"]),
        ("His passport number X4RTBPFW4 is valid", ["X4RTBPFW4"]),
        ("booking code TQ7-XXP", ["TQ7-XXP"]),
        ("booking code SUMMER", []),
        ("MRN: 00123456", ["00123456"]),
        ("case no. 2024/117-B", ["2024/117-B"]),
        ("customer id: 998877", ["998877"]),
        ("Kundennummer 4711-2234", ["4711-2234"]),
        ("VIN 1HGCM82633A004352", ["1HGCM82633A004352"]),
        ("Order 5550142 shipped", []),
        ("SKU 536804398", []),
        ("ISO-8601 and UTF-16 and CVE-2024-12345", []),
        ("patient 12 of 30", []),
        ("policy of 2024", []),
        ("file main_2024.py", []),
        ("the case 2024-01-15", []),
        ("Hollis Ltd (company no. 08812345)", ["08812345"]),
    ],
)
def test_record_id(text: str, found: list[str]) -> None:
    assert surfaces(RecordIdRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("born 17/02/1984", ["17/02/1984"]),
        ("on 1984-02-17.", ["1984-02-17"]),
        ("17.02.1984", ["17.02.1984"]),
        ("17 February 1984", ["17 February 1984"]),
        ("Feb 17, 1984", ["Feb 17, 1984"]),
        ("the 17th of February 1984", ["17th of February 1984"]),
        ("am 17. Februar 1984", ["17. Februar 1984"]),
        ("le 3 août 2021", ["3 août 2021"]),
        ("on May 5", ["May 5"]),
        ("DOB: March 1984", ["March 1984"]),
        ("1984-02-17T08:00", ["1984-02-17"]),
        ("version 1.2.2024", []),
        ("2024-01-15 10:11:12 INFO x", []),
        ("db/migrate/20261130081502_add_users.sql", []),
        ("migrations/2024-01-15/x.sql", []),
        ("99/99/2024", []),
        ("you may 5 times", []),
        ("3.10.12-slim", []),
        ("in March 1984", []),
    ],
)
def test_date(text: str, found: list[str]) -> None:
    assert surfaces(DateRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("paid $1,240.50.", ["$1,240.50"]),
        ("€ 12.000,00", ["€ 12.000,00"]),
        ("85k EUR a year", ["85k EUR"]),
        ("12.5 million dollars", ["12.5 million dollars"]),
        ("USD 95,000", ["USD 95,000"]),
        ("$1 $HOME ${2}", []),
        ("12 apples", []),
    ],
)
def test_amount(text: str, found: list[str]) -> None:
    assert surfaces(AmountRecognizer(), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("at 14 Rosewood Lane.", ["14 Rosewood Lane"]),
        ("Lindenstrasse 12, 10969 Berlin", ["Lindenstrasse 12, 10969 Berlin"]),
        ("Große Straße 3a", ["Große Straße 3a"]),
        ("Am Markt 7, 23552 Lübeck", ["Am Markt 7, 23552 Lübeck"]),
        ("12 rue de la Paix, 75002 Paris", ["12 rue de la Paix, 75002 Paris"]),
        ("Calle Mayor 5", ["Calle Mayor 5"]),
        ("12 Elm St, Springfield, IL 62704", ["12 Elm St, Springfield, IL 62704"]),
        ("22 Baker Street, London NW1 6XE", ["22 Baker Street, London NW1 6XE"]),
        ("P.O. Box 123", ["P.O. Box 123"]),
        ("14 rosewood lane", ["14 rosewood lane"]),
        ("postcode: 10969", ["10969"]),
        ("a 2 way street", []),
        ("section 4 Main Road", []),
        ("10 open roads", []),
        ("12345", []),
        ("con domicilio en calle Mayor 5", ["calle Mayor 5"]),
    ],
)
def test_address(text: str, found: list[str]) -> None:
    assert surfaces(AddressRecognizer(), text) == found
