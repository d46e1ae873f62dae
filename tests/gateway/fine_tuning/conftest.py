"""One gateway that trains, for all tests of this folder."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Test folders are no packages, so helpers shared by several folders need theirs on the path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from jobs_gateway import Running, running_gateway, save_tiny_encoder


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("trainer")
    save_tiny_encoder(folder / "models")
    with running_gateway(folder) as running:
        yield running
