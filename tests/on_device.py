"""Pytest plugin: decoders and jobs go to a GPU, or to a simulated one, unless told otherwise."""

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
