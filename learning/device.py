"""Where a process computes: on the GPU that is its own, or on the CPU."""

import os

import torch


def own_device() -> torch.device:
    """Return this process's GPU where there is one, else the CPU."""
    return claim("cuda") if torch.cuda.is_available() else torch.device("cpu")


def claim(name: str) -> torch.device:
    """Return a device as torch names it; ``cuda`` is a GPU of its own for every process of torchrun.

    Raises:
        ValueError: There is no such device.
    """
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"{name} is no device; use cpu or cuda") from None
    if device.type != "cuda":
        return device
    if not torch.cuda.is_available():
        raise ValueError("torch sees no GPU here; use the device cpu")
    local = os.environ.get("LOCAL_RANK")
    if device.index is not None:
        torch.cuda.set_device(device.index)
    elif local is not None:
        torch.cuda.set_device(int(local))
    # Collectives work on the current device, so this is told before a process group is made.
    return torch.device("cuda", torch.cuda.current_device())


def dtype_of(device: torch.device) -> str:
    """Return the type that decoders are loaded in: bf16 on a GPU, half the memory and faster."""
    return "float32" if device.type == "cpu" else "bfloat16"
