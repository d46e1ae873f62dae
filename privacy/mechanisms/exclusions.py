"""Names that must not be drawn, and how many of them are charged (docs/mechanism.md).

The set of excluded names is private: it holds the original itself and the other originals.  What is
charged must therefore bound its size in every neighbouring session, not only in this one.
"""

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from privacy.embedding.base import fold
from privacy.pools.pool import Pool


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Indices that must not be drawn, and a public bound on how many there can be.

    Raises:
        ValueError: The bound is below the number of indices.
    """

    indices: frozenset[int]
    bound: int

    def __post_init__(self) -> None:
        if self.bound < len(self.indices):
            raise ValueError("the charged number of exclusions is below the actual number")


NOTHING = Exclusions(frozenset(), 0)


def standing_in(pool: Pool, clear_text: Iterable[str]) -> frozenset[int]:
    """Return the indices of the pool's names that stand in any of the texts."""
    return frozenset().union(*(pool.occurring_in(text) for text in clear_text))


def exclusions(
    pool: Pool,
    originals: Iterable[str],
    clear_text: Iterable[str],
    standing: frozenset[int] | None = None,
) -> Exclusions:
    """Exclude the originals of a session and the pool's names that stand in its clear text.

    Every distinct original counts as one, whether the pool holds it or not, so that the bound is
    the same when an original is replaced by any other name; the clear text leaves for the provider
    as it is, so what stands in it is public.

    Args:
        originals: All originals of the pool's fine type in the session, the one to be replaced
            included.
        clear_text: Texts of the session; best without the originals, though their presence only
            costs anything where an original of several words contains further names of the pool.
        standing: What `standing_in` says of these texts, if it is known already.
    """
    distinct = {fold(original) for original in originals}
    own = {index for index in (pool.index_of(name) for name in distinct) if index is not None}
    extra = (standing_in(pool, clear_text) if standing is None else standing) - own
    return Exclusions(frozenset(own | extra), len(distinct) + len(extra))


def from_predicate(
    pool: Pool, taken: Collection[int], forbidden: Callable[[str], bool]
) -> Exclusions:
    """Evaluate a predicate on every name that remains.

    The bound is the count plus one: replacing one original by another adds at most one name.
    """
    gone = frozenset(taken)
    indices = frozenset(
        index for index, name in enumerate(pool.names) if index not in gone and forbidden(name)
    )
    return Exclusions(indices, len(indices) + 1)


def exclusion_charge(count: int, largest: float) -> tuple[float, float]:
    """Return (epsilon, delta) of conditioning on not drawing any of ``count`` names.

    With q = count * largest: epsilon = ln(1/(1-q)), delta = q/(1-q), where ``largest`` bounds the
    probability of any one name under any input.  From delta = 1 on the statement says nothing
    more, and (0, 1) is returned.
    """
    share = count * largest
    if share <= 0.0:
        return 0.0, 0.0
    if share >= 0.5:
        return 0.0, 1.0
    return -math.log1p(-share), share / (1.0 - share)
