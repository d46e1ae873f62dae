"""What a run tells its caller while it goes on."""

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Event:
    """Progress of a run. Only public figures, unless ``report_loss`` was asked for.

    Attributes:
        kind: ``phase`` (one begins), ``step``, ``checkpoint``, ``stopped`` or ``done``.
        step: Steps done over all phases.
        total_steps: Steps planned.
        phase: Method of the running phase.
        epsilon: Spent by the whole account so far, add/remove; None without privacy.
        delta: The delta it holds at.
        eta_seconds: Expected time to the end; None at the start.
        non_private_loss: Mean training loss of the batch, not protected; None unless asked for.
    """

    kind: Literal["phase", "step", "checkpoint", "stopped", "done"]
    step: int
    total_steps: int
    phase: str
    epsilon: float | None
    delta: float
    eta_seconds: float | None = None
    non_private_loss: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)
