"""One gateway that trains, for all tests of this folder."""

from collections.abc import Iterator

import pytest
from jobs_gateway import Running, running_gateway, save_tiny_encoder


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("trainer")
    save_tiny_encoder(folder / "models")
    with running_gateway(folder) as running:
        yield running
