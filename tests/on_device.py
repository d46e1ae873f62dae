"""Pytest plugin: decoders and jobs go to a GPU, or to a simulated one, unless told otherwise."""

from typing import Any

import pytest
import torch

from learning import device
from learning.ppft import decoder

SIMULATED = not torch.cuda.is_available()
if SIMULATED:
    from simulated_device import DEVICE
else:
    DEVICE = torch.device("cuda", 0)
NAME = DEVICE.type

torch.set_num_threads(1)
device.own_device = lambda: DEVICE
decoder.load_decoder.__defaults__ = (NAME, "float32")


def exchanged(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    """Make this process one of two that agree on everything; returns what it hands to collectives."""
    seen: list[torch.Tensor] = []

    def hand(tensor: torch.Tensor, *_: Any, **__: Any) -> None:
        seen.append(tensor)

    def gather(found: list[Any], own: Any) -> None:
        found[:] = [own] * len(found)

    faked = {
        "is_initialized": lambda: True,
        "get_rank": lambda: 0,
        "get_world_size": lambda: 2,
        "all_reduce": hand,
        "broadcast": hand,
        "all_gather_object": gather,
        "barrier": lambda: None,
    }
    for name, function in faked.items():
        monkeypatch.setattr(torch.distributed, name, function)
    return seen
