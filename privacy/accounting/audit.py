"""The exact audit: does a mechanism keep what the ledger charges? (DESIGN 3.7)

Pools are public and finite, so output distributions are computed, not sampled.  For every pair of
inputs four statements are checked in both directions: the loss over the full pool against the claim
for this pair and against the ledger's epsilon, the loss after names have left, and the hockey-stick
divergence with exclusions that differ between the inputs, chosen as badly as possible.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from privacy.accounting.divergence import hockey_stick, max_divergence, without
from privacy.embedding.geometry import unit
from privacy.pools.pool import Pool
from privacy.randomness import Randomness

Vector = NDArray[np.float64]
Pair = tuple[Vector, Vector]

# Angles of nearly equal vectors are exact to about 1e-8; times epsilon this is far below it.
TOLERANCE: Final = 1e-6
_FULL: Final = "full pool"
_DEPLETED: Final = "depleted pool"
_EXCLUDED: Final = "exclusions"
_LEDGER: Final = "ledger"


class Audited(Protocol):
    """What the audit needs of a mechanism."""

    @property
    def name(self) -> str: ...

    def log_probabilities(self, vector: Vector, pool: Pool, taken: Any = ()) -> Vector: ...

    def loss_bound(self, a: Vector, b: Vector) -> float: ...

    def base_charge(self, pool: Pool) -> tuple[float, float]: ...

    def exclusion_charge(self, pool: Pool, taken: int, count: int) -> tuple[float, float]: ...


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement that failed: what was found and what was claimed (both loss, or both delta)."""

    check: str
    pair: int
    found: float
    claimed: float


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of an audit.

    Attributes:
        worst_loss: Largest exact loss found on the full pool.
        tightness: Largest ratio of exact loss to claimed loss; at most 1 if all is well.
        worst_delta: Largest exact delta found with exclusions.
        delta_tightness: Largest ratio of exact to claimed delta.
        findings: What failed, empty if all is well.
    """

    fine_type: str
    mechanism: str
    pairs: int
    worst_loss: float
    tightness: float
    worst_delta: float
    delta_tightness: float
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        return not self.findings

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data, with ``passed``."""
        return {**asdict(self), "passed": self.passed}


class _Tally:
    """Collects the results of the single checks."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.worst = dict.fromkeys((_FULL, _LEDGER, _DEPLETED, _EXCLUDED), 0.0)
        self.ratio = dict.fromkeys((_FULL, _LEDGER, _DEPLETED, _EXCLUDED), 0.0)

    def add(self, check: str, pair: int, found: float, claimed: float) -> None:
        self.worst[check] = max(self.worst[check], found)
        if math.isinf(claimed):
            return
        if found > claimed + TOLERANCE:
            self.findings.append(Finding(check, pair, found, claimed))
        if found > TOLERANCE:
            ratio = found / claimed if claimed > 0.0 else math.inf
            self.ratio[check] = max(self.ratio[check], ratio)


def audit_pool(
    pool: Pool, mechanism: Audited, pairs: Iterable[Pair], rng: Randomness
) -> AuditReport:
    """Check every pair of input vectors exactly.

    A mechanism that claims no finite loss is checked for its delta on the full pool only.

    Args:
        pairs: Input vectors, each of unit length or zero; see `audit_pairs`.
        rng: Chooses which names have left and which are excluded.
    """
    tally = _Tally()
    count = 0
    for number, (a, b) in enumerate(pairs):
        count += 1
        claimed = mechanism.loss_bound(a, b)
        p, q = mechanism.log_probabilities(a, pool), mechanism.log_probabilities(b, pool)
        if math.isinf(claimed):
            delta = max(hockey_stick(p, q, math.inf), hockey_stick(q, p, math.inf))
            tally.add(_EXCLUDED, number, delta, mechanism.base_charge(pool)[1])
            continue
        loss = max(max_divergence(p, q), max_divergence(q, p))
        tally.add(_FULL, number, loss, claimed)
        tally.add(_LEDGER, number, loss, mechanism.base_charge(pool)[0])
        if len(pool) > 3:
            _check_session(pool, mechanism, (a, b), claimed, number, rng, tally)
    return AuditReport(
        fine_type=pool.fine_type,
        mechanism=mechanism.name,
        pairs=count,
        worst_loss=tally.worst[_FULL],
        tightness=max(tally.ratio[_FULL], tally.ratio[_DEPLETED]),
        worst_delta=tally.worst[_EXCLUDED],
        delta_tightness=tally.ratio[_EXCLUDED],
        findings=tuple(tally.findings),
    )


def _check_session(
    pool: Pool,
    mechanism: Audited,
    pair: Pair,
    claimed: float,
    number: int,
    rng: Randomness,
    tally: _Tally,
) -> None:
    """Check the pair with names taken, and then with a common and a differing exclusion."""
    taken = _some(len(pool), rng.below(max(1, len(pool) // 2)), rng)
    p, q = (mechanism.log_probabilities(vector, pool, taken) for vector in pair)
    loss = max(max_divergence(p, q), max_divergence(q, p))
    tally.add(_DEPLETED, number, loss, claimed)
    gone = set(taken)
    common = [i for i in _some(len(pool), rng.below(4), rng) if i not in gone]
    if len(pool) - len(gone) - len(common) < 3:
        return
    # Each side excludes what the other would give most often: its own name at its worst.
    p_own = _likeliest(q, common)
    q_own = _likeliest(p, [*common, p_own])
    one = without(p, np.array([*common, p_own], dtype=np.intp))
    two = without(q, np.array([*common, q_own], dtype=np.intp))
    more, slack = mechanism.exclusion_charge(pool, len(gone), len(common) + 1)
    delta = max(
        hockey_stick(one, two, claimed + more + TOLERANCE),
        hockey_stick(two, one, claimed + more + TOLERANCE),
    )
    tally.add(_EXCLUDED, number, delta, slack)


def _likeliest(p: Vector, barred: list[int]) -> int:
    rest = p.copy()
    rest[barred] = -np.inf
    return int(np.argmax(rest))


def _some(size: int, count: int, rng: Randomness) -> list[int]:
    """Return ``count`` distinct indices below ``size``."""
    return [int(index) for index in np.argsort(rng.uniform(size), kind="stable")[:count]]


def audit_pairs(pool: Pool, count: int, rng: Randomness) -> list[Pair]:
    """Return about ``count`` pairs of inputs, half of them hard.

    Random names of the pool; a name and its nearest neighbour (small claimed loss); a name and its
    opposite (large loss); a name and the zero vector; a name and a slight turn of it.
    """
    vectors = pool.vectors
    pairs: list[Pair] = []
    while len(pairs) < count:
        a, b = (vectors[rng.below(len(pool))] for _ in range(2))
        cosine = vectors @ a
        cosine[cosine > 1.0 - 1e-9] = -1.0
        noise = unit(rng.uniform(len(a)) - 0.5)
        pairs += [
            (a, b),
            (a, unit(vectors[rng.below(len(pool))] + b)),
            (a, noise),
            (a, vectors[int(np.argmax(cosine))]),
            (a, unit(a + 0.01 * noise)),
            (a, -a),
            (a, np.zeros_like(a)),
        ]
    return pairs[:count]


def dictionary_pairs(pool: Pool, count: int, rng: Randomness) -> list[Pair]:
    """Return ``count`` pairs of names of the pool, for mechanisms that claim no more."""
    vectors = pool.vectors
    return [(vectors[rng.below(len(pool))], vectors[rng.below(len(pool))]) for _ in range(count)]
