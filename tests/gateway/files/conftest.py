"""A gateway on an empty folder for every test."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Test folders are no packages, so helpers shared by several folders need theirs on the path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from documents_app import Gateway, open_gateway


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with open_gateway(tmp_path) as opened:
        yield opened
