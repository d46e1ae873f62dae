"""Examples of every form for tests of training and answering."""

import numpy as np
from ppft_tiny import DIMENSIONS

from learning.ppft.model import Example
from privacy.ppft.tasks import Task


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, DIMENSIONS)).astype(np.float32)


EXAMPLES = [
    Example(rows(1, 1), Task.SENTIMENT, "positive"),
    Example(rows(7, 2), Task.TOPIC, "Sports"),
    Example(rows(3, 3), Task.ANSWER, "it is fine"),
    Example(rows(0, 4), Task.CHOICE, "none"),
]
