"""Which device a process takes; no GPU is touched."""

import os
from types import SimpleNamespace

import pytest
import torch

from learning.device import claim, dtype_of, own_device


class TwoGpus:
    """What of ``torch.cuda`` is called."""

    def __init__(self) -> None:
        self.current = 0

    def is_available(self) -> bool:
        return True

    def set_device(self, index: int) -> None:
        self.current = index

    def current_device(self) -> int:
        return self.current


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCAL_RANK", raising=False)


def test_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "cuda", SimpleNamespace(is_available=lambda: False))
    assert own_device() == claim("cpu") == torch.device("cpu")
    assert dtype_of(own_device()) == "float32"
    with pytest.raises(ValueError, match="torch sees no GPU"):
        claim("cuda")
    with pytest.raises(ValueError, match="use cpu or cuda"):
        claim("gpu")


def test_every_process_of_torchrun_takes_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = TwoGpus()
    monkeypatch.setattr(torch, "cuda", gpus)
    assert own_device() == torch.device("cuda", 0)
    monkeypatch.setitem(os.environ, "LOCAL_RANK", "1")
    assert own_device() == claim("cuda") == torch.device("cuda", 1)
    assert gpus.current == 1 and dtype_of(claim("cuda")) == "bfloat16"
    assert claim("cuda:0") == torch.device("cuda", 0) and gpus.current == 0


def test_a_process_keeps_the_gpu_that_its_group_gave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = TwoGpus()
    monkeypatch.setattr(torch, "cuda", gpus)
    gpus.set_device(1)
    assert own_device() == torch.device("cuda", 1)
