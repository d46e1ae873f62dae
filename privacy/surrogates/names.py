"""Surrogates of user names and hosts: made-up words in the same pattern."""

import ipaddress
from typing import Final

from privacy.randomness import Randomness
from privacy.surrogates.base import DrawnSurrogate, SurrogateContext, digits, worded
from privacy.surrogates.ip import IpSurrogate
from privacy.types import HOST, USERNAME

_SHORTEST: Final = 3
# A made-up word with these few letters more cannot be anybody's account by chance.
_ROOM: Final = 3


class UsernameSurrogate(DrawnSurrogate):
    """Keeps separators, case, the place of digits and a leading at sign."""

    type = USERNAME

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        drawn = worded(original, rng, _SHORTEST)
        return drawn + digits(rng, _ROOM) if context.widened else drawn


class HostSurrogate(DrawnSurrogate):
    """Keeps the machine's own pattern; the domain becomes the session's example domain for it."""

    type = HOST

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        try:
            ipaddress.ip_address(original)
        except ValueError:
            pass
        else:
            return IpSurrogate().draw(original, rng, context)
        if "." not in original:
            return worded(original, rng, _SHORTEST)
        if context.attempt:
            context.domains.pop(original.casefold(), None)
        # "db01.corp.internal" becomes a machine below the domain that its fellows share.
        drawn = context.domain_for(original, rng)
        return drawn.upper() if original.isupper() else drawn
