"""Shared: the tiny decoder's folder, and one torch thread."""

from pathlib import Path

import pytest
import torch
from ppft_tiny import decoder_folder

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return decoder_folder(tmp_path_factory.mktemp("decoder"))
