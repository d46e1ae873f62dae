"""Jobs without a server: a real store, a real supervisor, real workers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from job_bench import Bench
from jobs_gateway import save_tiny_encoder


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bases")
    save_tiny_encoder(folder)
    return folder


@pytest.fixture
def bench(tmp_path: Path, models: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, models)
    yield made
    made.db.close()
