"""How far a session has used up a pool (DESIGN 3.5)."""

from dataclasses import dataclass

from privacy.pools.pool import Pool


@dataclass(frozen=True, slots=True)
class Depletion:
    """The state of one pool in one session.

    Attributes:
        size: Names at the current level.
        used: Names issued.
        remaining: Names left at this level.
        reserve: Further names in the public lists of the next levels.
        share: used/size.
        requests_left: Requests until this level is exhausted at the mean rate so far; None while
            nothing was used.
    """

    fine_type: str
    level: int
    size: int
    used: int
    remaining: int
    reserve: int
    share: float
    requests_left: float | None


def depletion(pool: Pool, used: int, requests: int) -> Depletion:
    """Return the state of ``pool`` after ``requests`` requests issued ``used`` of its names.

    Raises:
        ValueError: A count is negative.
    """
    if used < 0 or requests < 0:
        raise ValueError("counts of names and requests cannot be negative")
    size = len(pool)
    remaining = max(0, size - used)
    rate = used / requests if requests else 0.0
    return Depletion(
        fine_type=pool.fine_type,
        level=pool.level,
        size=size,
        used=used,
        remaining=remaining,
        reserve=pool.sizes[-1] - size,
        share=used / size,
        requests_left=remaining / rate if rate > 0.0 else None,
    )
