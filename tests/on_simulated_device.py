"""Pytest plugin: decoders and jobs go to the simulated device unless told otherwise."""

import simulated_device
import torch

from learning import device
from learning.ppft import decoder

torch.set_num_threads(1)
device.own_device = lambda: simulated_device.DEVICE  # type: ignore[assignment]
decoder.load_decoder.__defaults__ = (simulated_device.NAME, "float32")
