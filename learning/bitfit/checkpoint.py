"""Checkpoints: model delta, optimiser, account and position, in one file that is whole or not there.

The state of the noise generator is not among them. A resumed run seeds anew from the operating
system, so no noise is ever drawn twice.
"""

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from learning.bitfit.delta import write_atomically
from learning.bitfit.errors import CheckpointError

FORMAT: Final = "penname-bitfit-checkpoint-1"
FILE: Final = "checkpoint.pt"
SEED_POLICY: Final = (
    "noise and batches are drawn from the operating system's CSPRNG, anew at every step; "
    "no seed is stored, a resumed run draws fresh noise"
)


@dataclass(slots=True)
class Checkpoint:
    """A resumable state.

    Attributes:
        run: Digest of the configuration; another run's checkpoint is refused.
        base: Fingerprint of the frozen parameters.
        phase: Number of the phase.
        step: Steps done in this phase; the sampler's position as well, one batch a step.
        noise_multiplier: Calibrated once, kept for the whole run.
        values: Every value trained so far.
        optimizer: State of the optimiser.
        account: State of the accountant.
    """

    run: str
    base: str
    phase: int
    step: int
    noise_multiplier: float
    values: dict[str, Tensor]
    optimizer: dict[str, Any]
    account: dict[str, Any]


def run_digest(config: str) -> str:
    """SHA-256 of a configuration's JSON."""
    return hashlib.sha256(config.encode()).hexdigest()


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint of ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: getattr(checkpoint, name) for name in checkpoint.__dataclass_fields__}
    content = io.BytesIO()
    torch.save({"format": FORMAT, "seed_policy": SEED_POLICY, **state}, content)
    write_atomically(folder / FILE, content.getvalue())


def load_checkpoint(folder: Path, run: str, base: str) -> Checkpoint | None:
    """Read the checkpoint of ``folder``; None when there is none.  Nothing in it is executed.

    Raises:
        CheckpointError: Not a checkpoint, or one of another run or another base model.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(state, dict) or state.pop("format", None) != FORMAT:
        raise CheckpointError(f"{path} is not a checkpoint of format {FORMAT}")
    state.pop("seed_policy", None)
    if set(state) != set(Checkpoint.__dataclass_fields__):
        raise CheckpointError(f"{path} is damaged; use a new folder")
    checkpoint = Checkpoint(**state)
    if checkpoint.run != run:
        raise CheckpointError(f"{path} belongs to a run of another configuration; use a new folder")
    if checkpoint.base != base:
        raise CheckpointError(f"{path} belongs to another base model")
    return checkpoint
