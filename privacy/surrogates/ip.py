"""Surrogates of IP addresses.

Public IPv4 addresses come from the documentation blocks of RFC 5737 (192.0.2.0/24, 198.51.100.0/24,
203.0.113.0/24) and, when a session has used those up, from the benchmarking block 198.18.0.0/15 of
RFC 2544; public IPv6 addresses from 2001:db8::/32 (RFC 3849).  A private, link-local or shared
address stays in its block (RFC 1918, RFC 3927, RFC 6598, RFC 4193, RFC 4291): it names no machine
outside.
"""

import ipaddress
import re
from typing import Final

from privacy.randomness import Randomness
from privacy.surrogates.base import DrawnSurrogate, SurrogateContext, pick, redrawn
from privacy.types import IP_ADDRESS

_PARTS: Final = re.compile(
    r"(?P<ip>(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f:.]+)"
    r"(?P<zone>%\w+)?(?P<rest>/\d{1,3}|:\d{1,5})?\Z"
)
_DOCUMENTATION: Final = tuple(
    ipaddress.IPv4Network(block) for block in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
)
_BENCHMARK: Final = ipaddress.IPv4Network("198.18.0.0/15")
_KEPT_V4: Final = tuple(
    ipaddress.IPv4Network(block)
    for block in (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "169.254.0.0/16",
        "100.64.0.0/10",
        "127.0.0.0/8",
    )
)
_DOCUMENTATION_V6: Final = ipaddress.IPv6Network("2001:db8::/32")
_KEPT_V6: Final = tuple(
    ipaddress.IPv6Network(block) for block in ("fc00::/8", "fd00::/8", "fe80::/64")
)


def _host_in(block: ipaddress.IPv4Network, rng: Randomness) -> ipaddress.IPv4Address:
    # Neither the network's own address nor broadcast.
    return block[1 + rng.below(block.num_addresses - 2)]


def documentation_ipv4(rng: Randomness, context: SurrogateContext) -> str:
    """Return an address of the blocks that are reserved for documentation."""
    return str(_host_in(_BENCHMARK if context.widened else pick(rng, _DOCUMENTATION), rng))


class IpSurrogate(DrawnSurrogate):
    """Keeps the family, a prefix length, a port and a zone."""

    type = IP_ADDRESS

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        found = _PARTS.match(original)
        try:
            address = ipaddress.ip_address(found.group("ip")) if found else None
        except ValueError:
            address = None
        if found is None or address is None:
            return redrawn(original, rng)
        rest = found.group("rest") or ""
        tail = (found.group("zone") or "") + rest
        if isinstance(address, ipaddress.IPv4Address):
            return _ipv4(address, rest.startswith("/"), rng, context) + tail
        return _ipv6(address, found.group("ip"), rng) + tail


def _ipv4(
    address: ipaddress.IPv4Address, is_network: bool, rng: Randomness, context: SurrogateContext
) -> str:
    block = next((block for block in _KEPT_V4 if address in block), None)
    drawn = str(_host_in(block, rng)) if block else documentation_ipv4(rng, context)
    if is_network:
        # The zeros of "10.2.0.0/16" belong to the prefix, not to a machine.
        zeros = re.search(r"(?:\.0)+\Z", str(address))
        count = zeros.group().count(".") if zeros else 0
        # What marks the block stays, or the network would be somebody's.
        count = min(count, 4 - -(-(block.prefixlen if block else 24) // 8))
        network = ".".join(drawn.split(".")[: 4 - count] + ["0"] * count)
        # The block itself ("10.0.0.0/8") becomes a host, as it has no other of its kind.
        return drawn if network == str(address) else network
    return drawn


def _ipv6(address: ipaddress.IPv6Address, written: str, rng: Randomness) -> str:
    block = next((block for block in _KEPT_V6 if address in block), _DOCUMENTATION_V6)
    size = 128 - block.prefixlen
    # As many free groups as the original shows, so that a short address stays short.
    shown = len([group for group in written.split(":") if group]) - (block.prefixlen + 15) // 16
    free = 16 * min(max(shown, 2), size // 16)
    value = 0
    for _ in range(free // 16):
        value = (value << 16) | (1 + rng.below(0xFFFF))
    drawn = block[value]
    text = drawn.exploded if "::" not in written and len(written) == 39 else drawn.compressed
    return text.upper() if any(c in "ABCDEF" for c in written) else text
