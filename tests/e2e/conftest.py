"""One gateway on loopback, in front of a recording upstream, for all end-to-end tests."""

from collections.abc import Iterator

import pytest
from e2e_gateway import Gateway, running_gateway


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(tmp_path_factory.mktemp("gateway")) as running:
        yield running


@pytest.fixture
def scripted(gateway: Gateway) -> Iterator[Gateway]:
    """The gateway, with an upstream whose answers the test sets; restored afterwards."""
    yield gateway
    gateway.upstream.script = None
    gateway.upstream.fail_with = 0
