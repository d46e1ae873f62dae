"""One surrogate a type, and the loop that finds a free one."""

from collections.abc import Callable
from dataclasses import replace

from privacy.randomness import Randomness
from privacy.surrogates.bank import BankAccountSurrogate, IbanSurrogate
from privacy.surrogates.base import Surrogate, SurrogateContext, SurrogateExhausted
from privacy.surrogates.card import CardSurrogate, CvcSurrogate
from privacy.surrogates.crypto import WalletSurrogate
from privacy.surrogates.dates import DateSurrogate
from privacy.surrogates.email import EmailSurrogate
from privacy.surrogates.ip import IpSurrogate
from privacy.surrogates.mac import MacSurrogate
from privacy.surrogates.names import HostSurrogate, UsernameSurrogate
from privacy.surrogates.national_id import NationalIdSurrogate
from privacy.surrogates.phone import PhoneSurrogate
from privacy.surrogates.record_id import RecordIdSurrogate
from privacy.surrogates.secret import SecretSurrogate
from privacy.surrogates.url import UrlSurrogate
from privacy.surrogates.us_ssn import SsnSurrogate

_REGISTRY: dict[str, Surrogate] = {}


def register(surrogate: Surrogate) -> None:
    """Add the surrogate of a type.

    Raises:
        ValueError: When the type has one already.
    """
    if surrogate.type in _REGISTRY:
        raise ValueError(
            f"there is a surrogate for {surrogate.type} already: remove it with unregister() first"
        )
    _REGISTRY[surrogate.type] = surrogate


def unregister(type_: str) -> None:
    """Remove the surrogate of a type.  Raises ValueError when it has none."""
    if _REGISTRY.pop(type_, None) is None:
        raise ValueError(f"there is no surrogate for {type_} to remove")


def surrogate_types() -> tuple[str, ...]:
    """Return the types that have a surrogate, sorted."""
    return tuple(sorted(_REGISTRY))


def surrogate_for(type_: str) -> Surrogate:
    """Return the surrogate of a type.  Raises ValueError when it has none (names, amounts)."""
    if type_ not in _REGISTRY:
        raise ValueError(
            f"no surrogate for {type_}: use the action substitute, placeholder or allow, "
            f"or one of the types {', '.join(surrogate_types())}"
        )
    return _REGISTRY[type_]


def make_fresh(
    type_: str,
    original: str,
    rng: Randomness,
    context: SurrogateContext,
    taken: Callable[[str], bool],
    attempts: int = 200,
) -> str:
    """Return a surrogate that ``taken`` does not refuse.

    Args:
        type_: The entity type.
        original: The value.
        rng: The randomness.
        context: The session's context; its attempt counter is set here.
        taken: Says whether a surrogate stands for another value, or stands in the texts.
        attempts: How many draws to make; later ones come from larger ranges where there are.

    Raises:
        SurrogateExhausted: When every draw was refused.
    """
    surrogate = surrogate_for(type_)
    for attempt in range(attempts):
        drawn = surrogate.make(original, rng, replace(context, attempt=attempt))
        if not taken(drawn):
            return drawn
    raise SurrogateExhausted(
        f"all {attempts} surrogates drawn for a value of type {type_} are in use in this session: "
        "start a new session, or let the policy use placeholders for this type"
    )


for _surrogate in (
    BankAccountSurrogate(),
    CardSurrogate(),
    CvcSurrogate(),
    DateSurrogate(),
    EmailSurrogate(),
    HostSurrogate(),
    IbanSurrogate(),
    IpSurrogate(),
    MacSurrogate(),
    NationalIdSurrogate(),
    PhoneSurrogate(),
    RecordIdSurrogate(),
    SecretSurrogate(),
    SsnSurrogate(),
    UrlSurrogate(),
    UsernameSurrogate(),
    WalletSurrogate(),
):
    register(_surrogate)
