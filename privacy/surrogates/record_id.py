"""Surrogates of record identifiers: the pattern stays, the number is another.

The letters before the first digit ("EMP-") are taken for the format of the records and stay; this
is what such a surrogate tells about the original.
"""

import re
from typing import Final

from privacy.randomness import Randomness
from privacy.surrogates.base import DrawnSurrogate, SurrogateContext, redrawn
from privacy.types import RECORD_ID

_PREFIX: Final = re.compile(r"[^\W\d_]{1,8}(?=[\W_]*\d)")


class RecordIdSurrogate(DrawnSurrogate):
    """Keeps separators, letter prefix, and the places of letters and digits."""

    type = RECORD_ID

    def draw(self, original: str, rng: Randomness, context: SurrogateContext) -> str:
        prefix = _PREFIX.match(original)
        # With few digits the prefix has to give way before the numbers run out.
        if prefix is None or context.widened:
            return redrawn(original, rng)
        return prefix.group() + redrawn(original[prefix.end() :], rng)
