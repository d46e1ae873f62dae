"""One row of the privacy ledger."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Charge:
    """What one draw costs.

    Attributes:
        fine_type: Pool the substitute came from, or ``date`` for a session's shift.
        mechanism: Name of the mechanism; decides which composition theorems apply.
        metric: ``angular``, ``chordal``, ``none`` or ``days`` (epsilon per day, its own account).
        epsilon: Bound on the loss between any two originals, >= 0, may be infinite.
        delta: In [0, 1].
        entity_hmac: Keyed hash of the entity; never the entity.

    Raises:
        ValueError: epsilon or delta out of range.
    """

    fine_type: str
    mechanism: str
    metric: str
    epsilon: float
    delta: float
    entity_hmac: str

    def __post_init__(self) -> None:
        if math.isnan(self.epsilon) or self.epsilon < 0.0:
            raise ValueError(f"a charge needs an epsilon of at least 0, not {self.epsilon}")
        if not 0.0 <= self.delta <= 1.0:
            raise ValueError(f"a charge needs a delta in [0, 1], not {self.delta}")
