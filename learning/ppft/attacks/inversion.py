"""Inversion: a decoder trained to write the victim's text from its rows.

*Noise-unaware* learns from clean rows and is given noised ones; *noise-aware* learns from rows noised as
the victim's are.  It is the server's own architecture turned against the customer.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from learning.ppft.generate import answers
from learning.ppft.model import Example, PpftModel
from learning.ppft.train import Plan, train
from privacy.ppft.tasks import Task

_TOKENS = 110


def train_inverter(
    model: PpftModel,
    rows: Sequence[NDArray[np.float32]],
    texts: Sequence[str],
    plan: Plan,
    report: Callable[[dict[str, Any]], None],
) -> None:
    """Teach a fresh model to write each text from its rows; in place."""
    pairs = zip(rows, texts, strict=True)
    train(model, [Example(r, Task.EXTRACT, text) for r, text in pairs], plan, report=report)


def invert(model: PpftModel, rows: Sequence[NDArray[np.float32]], batch: int = 16) -> list[str]:
    """Return the texts that the trained model writes from rows."""
    found: list[str] = []
    for start in range(0, len(rows), batch):
        examples = [Example(r, Task.EXTRACT) for r in rows[start : start + batch]]
        found += answers(model, examples, _TOKENS)
    return found
