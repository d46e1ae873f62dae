"""Counting what a tagger found against what is there."""

from collections.abc import Sequence
from dataclasses import dataclass

Entity = tuple[int, int, str]
"""``(start, one past the end, type)``, in words or code points."""


@dataclass(frozen=True)
class Counts:
    """Sums over texts.

    Attributes:
        gold: Entities in the gold standard.
        found: Entities reported.
        touched: Gold entities that some reported entity overlaps, whatever its type.
        justified: Reported entities that overlap some gold entity.
        exact: Reported entities with the borders and type of a gold entity.
    """

    gold: int = 0
    found: int = 0
    touched: int = 0
    justified: int = 0
    exact: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.gold + other.gold,
            self.found + other.found,
            self.touched + other.touched,
            self.justified + other.justified,
            self.exact + other.exact,
        )

    @property
    def recall(self) -> float:
        """Overlap recall in [0, 1]; 0 where there is nothing to find."""
        return self.touched / self.gold if self.gold else 0.0

    @property
    def precision(self) -> float:
        """Overlap precision in [0, 1]; 0 where nothing was reported."""
        return self.justified / self.found if self.found else 0.0

    @property
    def f1(self) -> float:
        """Exact-match F1 in [0, 1]."""
        total = self.gold + self.found
        return 2 * self.exact / total if total else 0.0

    def summary(self) -> dict[str, float]:
        """The three figures, rounded, and the number of gold entities."""
        return {
            "overlap_recall": round(self.recall, 4),
            "overlap_precision": round(self.precision, 4),
            "exact_f1": round(self.f1, 4),
            "gold": self.gold,
        }


def count(gold: Sequence[Entity], found: Sequence[Entity]) -> Counts:
    """Counts for one text."""
    return Counts(
        gold=len(gold),
        found=len(found),
        touched=sum(any(g[0] < f[1] and f[0] < g[1] for f in found) for g in gold),
        justified=sum(any(g[0] < f[1] and f[0] < g[1] for g in gold) for f in found),
        exact=len(set(gold) & set(found)),
    )
