"""What a session remembers of one substituted value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

GIVEN: Final = "person.given"
FAMILY: Final = "person.family"
INITIAL: Final = "person.initial"
MENTION: Final = "person.mention"
ADDRESS: Final = "loc.address"

#: Prefix of the key of a spelling that has no case form in common with its entity.
EXACT_PREFIX: Final = "="


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of a session's map.

    Attributes:
        fine_type: Pool name (``person.family``, ``loc.city``, ...) or lower-case structured type.
        key: What makes two spellings the same entity: the case-folded form, or ``=`` and the exact
            spelling where no case form fits.
        original: Canonical original.
        substitute: Canonical substitute; its upper and lower forms stand for the original's.
        pool_index: Position in the public pool, None for surrogates and derived rows.
        detail: Small additions, such as the parts of a person's mention.
        type: Coarse entity type (``privacy.types``).
        epsilon: ε charged for the draw (0 for surrogates and derived rows).
        delta: δ charged for the draw.
    """

    fine_type: str
    key: str = field(repr=False)
    original: str = field(repr=False)
    substitute: str = field(repr=False)
    pool_index: int | None = None
    detail: Mapping[str, str] = field(default_factory=dict, repr=False)
    type: str = ""
    epsilon: float = 0.0
    delta: float = 0.0

    @property
    def derived(self) -> bool:
        """Whether the substitute follows from other entries, or is a marker that several share."""
        return self.fine_type == MENTION or self.detail.get("restore") == "no"


def is_marker(substitute: str) -> bool:
    """Say whether a substitute is a placeholder such as ``[PERSON_1]``, which is read in any case."""
    return substitute.startswith("[")
