"""A gateway on an empty folder for every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from documents_app import Gateway, open_gateway


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with open_gateway(tmp_path) as opened:
        yield opened
