"""The recognizers that are in use, by unique name."""

from collections.abc import Callable
from threading import Lock
from typing import Final

from privacy.detection.base import Recognizer
from privacy.detection.recognizers.address import AddressRecognizer
from privacy.detection.recognizers.amount import AmountRecognizer
from privacy.detection.recognizers.bank_account import BankAccountRecognizer
from privacy.detection.recognizers.credit_card import CreditCardRecognizer
from privacy.detection.recognizers.crypto import CryptoRecognizer
from privacy.detection.recognizers.cvc import CvcRecognizer
from privacy.detection.recognizers.date import DateRecognizer
from privacy.detection.recognizers.email import EmailRecognizer, SpokenEmailRecognizer
from privacy.detection.recognizers.encoded import Base64Recognizer, EscapedEmailRecognizer
from privacy.detection.recognizers.host import HostRecognizer
from privacy.detection.recognizers.iban import IbanRecognizer
from privacy.detection.recognizers.ip import IpRecognizer
from privacy.detection.recognizers.mac import MacRecognizer
from privacy.detection.recognizers.medical_licence import MedicalLicenceRecognizer
from privacy.detection.recognizers.national_id import NationalIdRecognizer
from privacy.detection.recognizers.org_form import OrgFormRecognizer
from privacy.detection.recognizers.person_column import PersonColumnRecognizer
from privacy.detection.recognizers.person_context import PersonContextRecognizer
from privacy.detection.recognizers.person_email import PersonEmailRecognizer
from privacy.detection.recognizers.person_field import PersonFieldRecognizer
from privacy.detection.recognizers.person_file import PersonFileRecognizer
from privacy.detection.recognizers.person_gazetteer import PersonGazetteerRecognizer
from privacy.detection.recognizers.person_script import PersonScriptRecognizer
from privacy.detection.recognizers.phone import PhoneRecognizer
from privacy.detection.recognizers.record_id import RecordIdRecognizer
from privacy.detection.recognizers.secret import SecretRecognizer
from privacy.detection.recognizers.url import UrlRecognizer
from privacy.detection.recognizers.us_ssn import UsSsnRecognizer
from privacy.detection.recognizers.username import UsernameRecognizer
from privacy.types import ENTITY_TYPES

Factory = Callable[[], Recognizer]


def _base64() -> Recognizer:
    return Base64Recognizer(
        [
            EmailRecognizer(),
            CreditCardRecognizer(),
            IbanRecognizer(),
            PhoneRecognizer(),
            UsSsnRecognizer(),
        ]
    )


_BUILT_IN: Final[tuple[Factory, ...]] = (
    EmailRecognizer, SpokenEmailRecognizer, EscapedEmailRecognizer, _base64, UrlRecognizer, HostRecognizer,
    UsernameRecognizer, SecretRecognizer, IpRecognizer, MacRecognizer, PhoneRecognizer, CreditCardRecognizer,
    CvcRecognizer, IbanRecognizer, BankAccountRecognizer, CryptoRecognizer, UsSsnRecognizer, NationalIdRecognizer,
    MedicalLicenceRecognizer, RecordIdRecognizer, DateRecognizer, AmountRecognizer, AddressRecognizer,
    OrgFormRecognizer, PersonGazetteerRecognizer, PersonContextRecognizer, PersonEmailRecognizer,
    PersonScriptRecognizer, PersonFieldRecognizer, PersonColumnRecognizer, PersonFileRecognizer,
)  # fmt: skip


class RecognizerRegistry:
    """Recognizers by name; thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._recognizers: dict[str, Recognizer] = {}

    def register(self, recognizer: Recognizer) -> None:
        """Add one recognizer.

        Raises:
            ValueError: Its name is taken, or it reports a type that does not exist.
        """
        unknown = sorted(set(recognizer.types) - set(ENTITY_TYPES))
        if unknown:
            raise ValueError(
                f"recognizer {recognizer.name!r} reports unknown types {unknown}; "
                f"choose from {', '.join(ENTITY_TYPES)}"
            )
        with self._lock:
            if recognizer.name in self._recognizers:
                raise ValueError(
                    f"a recognizer named {recognizer.name!r} is registered already; "
                    "unregister it first or choose another name"
                )
            self._recognizers[recognizer.name] = recognizer

    def unregister(self, name: str) -> None:
        """Remove one recognizer.

        Raises:
            KeyError: No recognizer has that name.
        """
        with self._lock:
            if name not in self._recognizers:
                raise KeyError(f"no recognizer is named {name!r}")
            del self._recognizers[name]

    def all(self) -> list[Recognizer]:
        """Return the registered recognizers in the order of registration."""
        with self._lock:
            return list(self._recognizers.values())


_DEFAULT: Final = RecognizerRegistry()
for _factory in _BUILT_IN:
    _DEFAULT.register(_factory())


def register(recognizer: Recognizer) -> None:
    """Add a recognizer to the default registry; see `RecognizerRegistry.register`."""
    _DEFAULT.register(recognizer)


def unregister(name: str) -> None:
    """Remove a recognizer from the default registry; see `RecognizerRegistry.unregister`."""
    _DEFAULT.unregister(name)


def default_recognizers() -> list[Recognizer]:
    """Return the recognizers of the default registry, built-in ones first."""
    return _DEFAULT.all()
