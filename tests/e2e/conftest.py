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


@pytest.fixture(scope="module")
def hasty(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that waits a second for a byte, and five in all."""
    with running_gateway(
        tmp_path_factory.mktemp("hasty"),
        detector=gateway.services.detector,
        upstream_timeout=0.8,
        request_timeout=5.0,
    ) as running:
        running.services.detector.detect(["warm-up"])
        yield running
