"""DP-BiTFiT as a job: biases and head of an encoder, or added biases of a causal model."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from learning.bitfit.accountant import COARSE, Accountant, Entry, calibrate
from learning.bitfit.clipping import SMALLEST_NORM, Clipping
from learning.bitfit.config import FineTuning, Phase
from learning.bitfit.select import Method as Part
from learning.methods.base import (
    Facts,
    MethodError,
    Plan,
    Reads,
    Result,
    Site,
    Tuned,
    Work,
    checkpoint_interval,
    settings_of,
)
from learning.tasks import is_causal, task_of

_BATCH: Final = 256
_EPOCHS: Final = 3.0
# Beyond these a plan takes minutes to price, and no run gets there.
_MOST_STEPS: Final = 1_000_000
_MOST_RECORDS: Final = 10**9
# A head at zero gives the biases below it no gradient, so the head goes first.
_ENCODER: Final[tuple[tuple[Part, float, float], ...]] = (
    ("last_layer", 10.0, 1e-2),
    ("bitfit", 1.0, 2e-3),
)

Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class PhaseSettings(BaseModel):
    """One phase: what is trained, and for how long."""

    model_config = ConfigDict(extra="forbid")

    method: Part = "bitfit"
    n_epochs: float | None = Field(None, gt=0, le=10_000)
    steps: int | None = Field(None, ge=1, le=_MOST_STEPS)
    batch_size: int | None = Field(None, ge=1)
    learning_rate: float | None = Field(None, gt=0, le=10)

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        if self.n_epochs is not None and self.steps is not None:
            raise ValueError("give n_epochs or steps, not both")
        return self


class Settings(PhaseSettings):
    """``method.dp_bitfit.hyperparameters``; "auto" is the same as leaving a field out.

    Attributes:
        batch_size: Mean size of a Poisson batch, the constant divisor of the noisy sums.
        dataset_size: N when the realised number of records is not public.
        labels: Classes; taken from the files when absent, and then treated as public.
        phases: Instead of one phase; all under one account.
        exclude: Shell patterns of parameters that stay frozen, for bases with layers that are refused.
    """

    epsilon: float = Field(8.0, gt=0, le=1000)
    delta: float | None = Field(None, gt=0, lt=1)
    dataset_size: int | None = Field(None, ge=1, le=_MOST_RECORDS)
    phases: list[PhaseSettings] | None = Field(None, min_length=1, max_length=8)
    max_grad_norm: float = Field(1.0, ge=SMALLEST_NORM, le=1e6)
    clipping: Clipping = "automatic"
    optimizer: Literal["adamw", "sgd"] = "adamw"
    weight_decay: float = Field(0.0, ge=0, le=1)
    warmup: float = Field(0.0, ge=0, le=1)
    decay: bool = False
    microbatch: int = Field(32, ge=1, le=4096)
    autocast: Literal["bf16"] | None = None
    checkpoint_every: int | None = Field(None, ge=1)
    max_length: int = Field(128, ge=8, le=4096)
    labels: list[Label] | None = Field(None, min_length=2)
    exclude: list[Pattern] | None = Field(None, max_length=50)

    @property
    def one_phase(self) -> bool:
        """Did the client describe the run itself?"""
        return bool(self.model_fields_set & {"method", "n_epochs", "steps", "learning_rate"})


class DpBitfit:
    """See the module."""

    type: str = "dp_bitfit"
    account: str = "dpsgd"
    adjacency: str = "add or remove one record"

    def reads(self, base: Path) -> Reads:
        if base.is_dir() and not (base / "config.json").is_file():
            raise MethodError("this is a PPFT model; train it with the method ppft")
        return "chat" if is_causal(base) else "labels"

    def plan(self, given: Mapping[str, Any], facts: Facts) -> Plan:
        if find_spec("dp_accounting") is None:
            raise MethodError(
                "needs dp-accounting, which is not installed. "
                "Run: pip install -c constraints.txt -e '.[finetune]'"
            )
        settings = settings_of(Settings, given)
        causal = is_causal(facts.base)
        if not causal and not settings.phases and not settings.one_phase:
            settings = settings.model_copy(update={"phases": _default_phases()})
        records = settings.dataset_size or facts.records
        delta = settings.delta or min(facts.delta, 1 / (2 * records))
        if delta >= 1 / records:
            raise MethodError("must be smaller than 1 / dataset_size", "delta")
        if not causal and len(facts.labels) < 2:
            raise MethodError("needs at least two different labels in the data", "labels")
        run = _run(settings, records, delta, None if causal else "auto")
        if run.total_steps > _MOST_STEPS:
            raise MethodError(
                f"gives {run.total_steps} steps and {_MOST_STEPS} are possible; train for fewer epochs, "
                "or in larger batches",
                "steps",
            )
        steps = [(run.rate_of(phase), run.steps_of(phase)) for phase in run.phases]
        try:
            sigma = calibrate(settings.epsilon, delta, steps)
        except ValueError as error:
            raise MethodError(f"cannot be kept: {error}", "epsilon") from None
        history = tuple(
            {"rate": q, "noise_multiplier": sigma, "steps": n, "label": phase.method}
            for (q, n), phase in zip(steps, run.phases, strict=True)
        )
        every = checkpoint_interval(settings.checkpoint_every, run.total_steps)
        run = run.model_copy(
            update={"epsilon": None, "noise_multiplier": sigma, "checkpoint_every": every}
        )
        shown = settings.model_dump(exclude_none=True, exclude={"labels"})
        shown |= {
            "delta": delta,
            "batch_size": round(run.expected_batch),
            "checkpoint_every": every,
            "noise_multiplier": sigma,
            "epsilon_replace_one": _account([history]).epsilon(
                delta, "replace_one", interval=COARSE
            ),
        }
        shown |= {"steps": run.total_steps, "n_epochs": sum(p.epochs for p in run.phases)}
        return Plan(
            history=history,
            steps=run.total_steps,
            epsilon=self.epsilon([history], delta),
            delta=delta,
            config={"run": run.model_dump(mode="json"), "max_length": settings.max_length},
            shown=shown,
        )

    def epsilon(self, histories: Sequence[Sequence[Mapping[str, Any]]], delta: float) -> float:
        # A coarse grid is still an upper bound, by some thousandths.
        return _account(histories).epsilon(delta, interval=COARSE)

    def run(self, work: Work) -> Result | None:
        from learning.methods._bitfit_run import run

        return run(work)

    def load(self, package: Path, base: Path, site: Site) -> Tuned:
        return task_of(base).load(package, base)


def _account(histories: Sequence[Sequence[Mapping[str, Any]]]) -> Accountant:
    return Accountant(
        Entry(e["rate"], e["noise_multiplier"], e["steps"], e["label"])
        for history in histories
        for e in history
        if e["steps"]
    )


def _default_phases() -> list[PhaseSettings]:
    return [
        PhaseSettings(method=part, n_epochs=epochs, learning_rate=rate, steps=None, batch_size=None)
        for part, epochs, rate in _ENCODER
    ]


def _run(settings: Settings, records: int, delta: float, head: str | None) -> FineTuning:
    batch = min(settings.batch_size or _BATCH, records)
    parts = settings.phases or [settings]
    if settings.phases and settings.steps:
        raise MethodError("belongs into the phases when there are phases", "steps")
    try:
        return FineTuning(
            dataset_size=records,
            expected_batch=batch,
            phases=tuple(_phase(part, settings, batch, records) for part in parts),
            epsilon=settings.epsilon,
            delta=delta,
            max_grad_norm=settings.max_grad_norm,
            clipping=settings.clipping,
            microbatch=settings.microbatch,
            autocast=settings.autocast,
            optimizer=settings.optimizer,
            weight_decay=settings.weight_decay,
            warmup=settings.warmup,
            decay=settings.decay,
            head=head,
            exclude=tuple(settings.exclude or ()),
            add_biases=head is None,
        )
    except ValidationError as error:
        raise MethodError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


def _phase(part: PhaseSettings, settings: Settings, batch: int, records: int) -> Phase:
    own = min(part.batch_size or batch, records)
    epochs = part.n_epochs or settings.n_epochs or _EPOCHS
    if part.steps:
        epochs = part.steps * own / records
    rate = part.learning_rate or settings.learning_rate or 5e-3
    return Phase(method=part.method, epochs=epochs, learning_rate=rate, expected_batch=own)


METHOD: Final = DpBitfit()
