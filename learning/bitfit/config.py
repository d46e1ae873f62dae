"""What a fine-tuning run is told: mechanism, phases, optimiser."""

import math
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from learning.bitfit.clipping import LARGEST_NORM, SMALLEST_NORM, Clipping
from learning.bitfit.select import Method


class Phase(BaseModel):
    """One part of a run: what is trained, and for how long.

    Attributes:
        method: ``bitfit``, ``full`` or ``last_layer``.
        epochs: Expected passes over the data; steps = ceil(epochs / q).
        learning_rate: Of this phase.
        expected_batch: q N of this phase; the run's when None.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: Method = "bitfit"
    epochs: float = Field(default=3.0, gt=0, allow_inf_nan=False)
    learning_rate: float = Field(default=5e-3, gt=0, allow_inf_nan=False)
    expected_batch: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class FineTuning(BaseModel):
    """A run.

    Attributes:
        dataset_size: N, a public or configured number; with ``expected_batch`` it gives q. The realised
            number of records enters nothing.
        expected_batch: q N, the mean size of a Poisson batch and the constant divisor.
        phases: One after the other on the same data, under one account (X+BiTFiT: ``full`` then
            ``bitfit``).
        epsilon: Target for the whole account at ``delta``; exactly one of ``epsilon`` and
            ``noise_multiplier``.
        noise_multiplier: Sigma, when no target is given.
        delta: 1 / (2 N) when None.
        private: False trains without clipping and noise, for comparison.
        microbatch: Examples per forward pass; any logical batch is cut into such pieces.
        head: Name of the classification head, ``auto``, or None.
        exclude: Shell patterns of parameters that stay frozen.
        add_biases: Give layers without a bias a zero one first (DP-BiTFiT-Add).
        autocast: ``bf16`` for mixed precision; norms, sums and noise stay fp32.
        warmup: Part of each phase over which the learning rate rises.
        decay: Let the learning rate fall linearly to 0 over each phase.
        checkpoint_every: Steps between checkpoints.
        report_loss: Put the mean training loss into the events. It is not private.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset_size: int = Field(ge=1)
    expected_batch: float = Field(gt=0, allow_inf_nan=False)
    phases: tuple[Phase, ...] = Field(default=(Phase(),), min_length=1)
    epsilon: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    noise_multiplier: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    delta: float | None = Field(default=None, gt=0, lt=1)
    private: bool = True
    max_grad_norm: float = Field(default=1.0, ge=SMALLEST_NORM, le=LARGEST_NORM)
    clipping: Clipping = "automatic"
    microbatch: int = Field(default=32, ge=1)
    optimizer: Literal["adamw", "sgd"] = "adamw"
    weight_decay: float = Field(default=0.0, ge=0)
    warmup: float = Field(default=0.0, ge=0, le=1)
    decay: bool = False
    head: str | None = "auto"
    exclude: tuple[str, ...] = ()
    add_biases: bool = False
    autocast: Literal["bf16"] | None = None
    checkpoint_every: int = Field(default=50, ge=1)
    report_loss: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        given = (self.epsilon is not None) + (self.noise_multiplier is not None)
        if self.private and given != 1:
            raise ValueError("give exactly one of epsilon and noise_multiplier")
        if not self.private and given:
            raise ValueError("a run without privacy takes neither epsilon nor noise_multiplier")
        for phase in self.phases:
            if self.batch_of(phase) > self.dataset_size:
                raise ValueError("expected_batch must not be larger than dataset_size")
        return self

    def batch_of(self, phase: Phase) -> float:
        """q N of a phase."""
        return phase.expected_batch or self.expected_batch

    def rate_of(self, phase: Phase) -> float:
        """q of a phase."""
        return self.batch_of(phase) / self.dataset_size

    def steps_of(self, phase: Phase) -> int:
        """Steps of a phase, fixed before the run."""
        return max(1, math.ceil(phase.epochs / self.rate_of(phase) - 1e-9))

    def taken_of(self, done: int) -> list[int]:
        """How many of the first ``done`` steps of the run belong to each phase."""
        steps: list[int] = []
        for phase in self.phases:
            steps.append(min(self.steps_of(phase), done - sum(steps)))
        return steps

    @property
    def total_steps(self) -> int:
        """Steps of all phases."""
        return sum(self.steps_of(phase) for phase in self.phases)

    @property
    def target_delta(self) -> float:
        """``delta``, or 1 / (2 N)."""
        return self.delta if self.delta is not None else 1 / (2 * self.dataset_size)
