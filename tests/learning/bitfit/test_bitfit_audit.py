"""An attack on what is released: its lower bound on epsilon against the claim.

A canary with the largest possible clipped gradient is in the data or not; the adversary sees every
released gradient and knows everything else (the threat model of the guarantee). From the two sets
of outcomes an exact Clopper-Pearson bound on the attack's rates gives a lower bound on epsilon
(Jagielski et al. 2020, section 3; Nasr et al. 2021).
"""

import math
from collections.abc import Mapping

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import beta
from torch import Tensor, nn

from learning.bitfit import Accountant, PoissonSampler, PrivacySettings, make_private
from learning.bitfit.noise import SeededNoise
from privacy.randomness import SeededRandomness

DELTA = 1e-3
RECORDS, STEPS, RATE, TRIALS = 4, 2, 0.5, 600
CONFIDENCE = 0.95


def loss(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    return model(batch["x"]).squeeze(1) * batch["direction"]


def scores(sigma: float, canary: bool, seed: int) -> NDArray[np.float64]:
    """The canary's score in every trial: how far the released gradients point its way."""
    records = RECORDS + canary
    model = nn.Linear(1, 1)
    settings = PrivacySettings(sigma, 1.0, 1.0, "abadi")
    private = make_private(model, settings, head=None, noise=SeededNoise(seed))
    # Everybody pulls down, the canary up, each with a gradient far above the clipping norm.
    direction = torch.full((records,), -5.0)
    if canary:
        direction[-1] = 5.0
    data = {"x": torch.zeros(records, 1), "direction": direction}
    sampler = PoissonSampler(records, RATE, randomness=SeededRandomness(seed))
    optimizer = torch.optim.SGD(private.parameters, lr=1.0)
    found = np.zeros(TRIALS)
    for trial in range(TRIALS):
        for _ in range(STEPS):
            rows = sampler.draw()
            if len(rows):
                private.accumulate(loss, {k: v[rows] for k, v in data.items()})
            before = model.bias.item()
            private.step(optimizer)
            # The others are known: the adversary takes the batch without the canary away.
            others = int((rows < RECORDS).sum())
            found[trial] += (before - model.bias.item()) + others
    return found


def epsilon_lower_bound(without: NDArray[np.float64], with_canary: NDArray[np.float64]) -> float:
    """The best bound over thresholds picked on one half of the trials, tested on the other."""
    half = len(without) // 2
    best = (-math.inf, 0.0)
    for threshold in np.unique(np.concatenate([without[:half], with_canary[:half]]))[::8]:
        best = max(best, (_bound(without[:half], with_canary[:half], threshold), float(threshold)))
    return _bound(without[half:], with_canary[half:], best[1])


def _bound(
    without: NDArray[np.float64], with_canary: NDArray[np.float64], threshold: float
) -> float:
    trials = len(without)
    hits, false = int((with_canary > threshold).sum()), int((without > threshold).sum())
    alpha = (1 - CONFIDENCE) / 2
    least = float(beta.ppf(alpha, hits, trials - hits + 1)) if hits else 0.0
    most = float(beta.ppf(1 - alpha, false + 1, trials - false)) if false < trials else 1.0
    return math.log((least - DELTA) / most) if least > DELTA else 0.0


def claimed(sigma: float) -> float:
    account = Accountant()
    account.charge(RATE, sigma, STEPS)
    return account.epsilon(DELTA)


@pytest.mark.parametrize("sigma", [0.8, 1.5])
def test_the_attack_stays_under_the_claim(sigma: float) -> None:
    bound = epsilon_lower_bound(scores(sigma, False, 1), scores(sigma, True, 2))
    assert bound < claimed(sigma)
    if sigma < 1:
        assert bound > 0.1  # the attack does see something


def test_without_noise_the_attack_breaks_the_claim() -> None:
    bound = epsilon_lower_bound(scores(0.0, False, 3), scores(0.0, True, 4))
    assert bound > claimed(1.5) > 0


def test_with_less_noise_than_claimed_the_attack_says_so() -> None:
    bound = epsilon_lower_bound(scores(0.2, False, 5), scores(0.2, True, 6))
    assert bound > claimed(1.5)
