"""A surrogate is what its original was: the type's own recognizer finds it, whole.

So a text with surrogates reads like a text with originals, to a model and to a detector.
"""

from collections.abc import Callable

import pytest

from privacy.detection.base import Recognizer
from privacy.detection.recognizers.bank_account import BankAccountRecognizer
from privacy.detection.recognizers.credit_card import CreditCardRecognizer
from privacy.detection.recognizers.crypto import CryptoRecognizer
from privacy.detection.recognizers.date import DateRecognizer
from privacy.detection.recognizers.email import EmailRecognizer, SpokenEmailRecognizer
from privacy.detection.recognizers.encoded import EscapedEmailRecognizer
from privacy.detection.recognizers.iban import IbanRecognizer
from privacy.detection.recognizers.ip import IpRecognizer
from privacy.detection.recognizers.mac import MacRecognizer
from privacy.detection.recognizers.national_id import NationalIdRecognizer
from privacy.detection.recognizers.phone import PhoneRecognizer
from privacy.detection.recognizers.record_id import RecordIdRecognizer
from privacy.detection.recognizers.secret import SecretRecognizer
from privacy.detection.recognizers.us_ssn import UsSsnRecognizer
from privacy.randomness import SeededRandomness
from privacy.surrogates import SurrogateContext, surrogate_for

CASES: list[tuple[Callable[[], Recognizer], str, list[str]]] = [
    (EmailRecognizer, "mail {}", ["Ilse.Varga@corp.internal", "bo@x.io"]),
    (EscapedEmailRecognizer, "mail {}", ["ilse.varga%40example.com"]),
    (SpokenEmailRecognizer, "mail {} now", ["ilse dot varga at example dot com"]),
    (
        CreditCardRecognizer,
        "card {}",
        ["4539 1488 0343 6467", "378734493671000", "5425233430109903", "2720992593714203"]
        + ["6011000990139424", "30569309025904", "3530111333300000", "6250941006528599"],
    ),
    (
        IbanRecognizer,
        "IBAN {}",
        ["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819", "FR1420041010050500013M02606"]
        + ["NL91ABNA0417164300", "BE68539007547034", "IT60X0542811101000000123456"],
    ),
    (IpRecognizer, "from {}", ["8.8.8.8", "10.0.0.7", "2a00:1450:4001:81b::200e"]),
    (MacRecognizer, "mac {}", ["00:1A:2B:3C:4D:5E"]),
    (UsSsnRecognizer, "SSN {}", ["536-22-8714"]),
    (
        CryptoRecognizer,
        "to {}",
        ["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy"]
        + ["bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "0x" + "52908400098527886E0F" * 2]
        + ["bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr"],
    ),
    (PhoneRecognizer, "call {}", ["212-734-9921", "+44 20 7123 4567", "+36 30 123 4567"]),
    (SecretRecognizer, "key {}", ["sk-proj-abcDEF123abcDEF123abcDEF", "ghp_" + "a1B2" * 9]),
    (NationalIdRecognizer, "NHS {}", ["943 476 5919"]),
    (NationalIdRecognizer, "DNI {}", ["12345678Z"]),
    (NationalIdRecognizer, "codice fiscale {}", ["RSSMRA85T10A562S"]),
    (NationalIdRecognizer, "PESEL {}", ["44051401359"]),
    (NationalIdRecognizer, "national insurance {}", ["AB123456C"]),
    (NationalIdRecognizer, "hetu {}", ["131052-308T"]),
    (NationalIdRecognizer, "AHV {}", ["756.9217.0769.85"]),
    (NationalIdRecognizer, "personnummer {}", ["811228-9874"]),
    (DateRecognizer, "born {}", ["17/02/1984", "17 February 1984"]),
    (RecordIdRecognizer, "licence {}", ["MED-88231"]),
    (BankAccountRecognizer, "routing number {}", ["021000021"]),
]


@pytest.mark.parametrize(("make", "frame", "values"), CASES)
def test_own_recognizer_finds_it(
    make: Callable[[], Recognizer], frame: str, values: list[str]
) -> None:
    recognizer = make()
    type_ = recognizer.types[0]
    context = SurrogateContext(day_shift=-37)
    for value in values:
        for seed in range(8):
            drawn = surrogate_for(type_).make(value, SeededRandomness(seed), context)
            text = frame.format(drawn)
            found = [text[span.start : span.end] for span in recognizer.find(text)]
            assert drawn in found, (type_, drawn, found)
