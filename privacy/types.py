"""The vocabulary that every other module shares: entity types and spans."""

from dataclasses import dataclass
from typing import Final

# Coarse types, as detectors report and policies name them.
PERSON: Final = "PERSON"
ORG: Final = "ORG"
LOC: Final = "LOC"
EMAIL: Final = "EMAIL"
PHONE: Final = "PHONE"
URL: Final = "URL"
IP_ADDRESS: Final = "IP_ADDRESS"
MAC_ADDRESS: Final = "MAC_ADDRESS"
HOST: Final = "HOST"
USERNAME: Final = "USERNAME"
SECRET: Final = "SECRET"  # noqa: S105 - the name of a type, not a password
CREDIT_CARD: Final = "CREDIT_CARD"
CVC: Final = "CVC"
IBAN: Final = "IBAN"
BANK_ACCOUNT: Final = "BANK_ACCOUNT"
CRYPTO_WALLET: Final = "CRYPTO_WALLET"
US_SSN: Final = "US_SSN"
NATIONAL_ID: Final = "NATIONAL_ID"
RECORD_ID: Final = "RECORD_ID"
DATE: Final = "DATE"
AMOUNT: Final = "AMOUNT"

NAMED_TYPES: Final = (PERSON, ORG, LOC)
STRUCTURED_TYPES: Final = (
    EMAIL,
    PHONE,
    URL,
    IP_ADDRESS,
    MAC_ADDRESS,
    HOST,
    USERNAME,
    SECRET,
    CREDIT_CARD,
    CVC,
    IBAN,
    BANK_ACCOUNT,
    CRYPTO_WALLET,
    US_SSN,
    NATIONAL_ID,
    RECORD_ID,
)
ENTITY_TYPES: Final = (*NAMED_TYPES, *STRUCTURED_TYPES, DATE, AMOUNT)


@dataclass(frozen=True, slots=True)
class Span:
    """One detected entity: ``text[start:end]``, offsets in code points of the original text.

    Attributes:
        start: First code point.
        end: One past the last code point; ``end > start``.
        type: One of ``ENTITY_TYPES``.
        score: Confidence in [0, 1].
        recognizer: Name of the recognizer that found it, for explanations.
    """

    start: int
    end: int
    type: str
    score: float
    recognizer: str

    def overlaps(self, other: "Span") -> bool:
        return self.start < other.end and other.start < self.end
