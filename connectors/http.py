"""The one place that makes HTTP clients, so that moving to another client is one import."""

from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

# Only these leave; a client's own headers (x-stainless-*, cookies, addresses) stay here.
_USER_AGENT = "penname"


def make_client(
    *,
    timeout: float,
    connect_timeout: float,
    transport: httpx.AsyncBaseTransport | None = None,
) -> httpx.AsyncClient:
    """Return a client without proxies, cookies or redirects.

    Args:
        timeout: Seconds without a byte before a read fails.
        connect_timeout: Seconds to connect.
        transport: Replaces the network, for tests.
    """
    return httpx.AsyncClient(
        timeout=httpx.Timeout(timeout, connect=connect_timeout),
        limits=httpx.Limits(max_connections=200, max_keepalive_connections=50),
        follow_redirects=False,
        trust_env=False,
        transport=transport,
        # Else what a provider sets in one tenant's answer would travel with the next tenant's request.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        headers={"user-agent": _USER_AGENT, "accept-encoding": "gzip, deflate"},
    )
