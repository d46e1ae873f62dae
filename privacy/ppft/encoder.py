"""What the client-side encoder is to the rest: texts in, one state per token out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class TokenStates:
    """The last hidden states of one text, special tokens left out.

    Attributes:
        states: float32 of shape (tokens, dimensions).
        offsets: int64 of shape (tokens, 2), the characters [start, end) of each token.
    """

    states: NDArray[np.float32]
    offsets: NDArray[np.int64]


class TokenEncoder(Protocol):
    """An encoder that runs inside the trust boundary."""

    @property
    def name(self) -> str:
        """Identifies the encoder: a server refuses rows of another one."""

    @property
    def dimensions(self) -> int:
        """Length of one state."""

    def encode(self, texts: Sequence[str]) -> list[TokenStates]:
        """Return the states of each text; an empty text has none."""

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Return how many states each text has, without running the model."""
