"""What a method of fine-tuning offers to jobs: a price, a run, and a model that answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from learning.rows import Rows

EventKind = Literal["message", "metrics", "checkpoint"]


class MethodError(ValueError):
    """A configuration that cannot be run; the message says what to change.

    Attributes:
        field: The setting at fault, relative to the method's own.
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class Facts:
    """What a plan is made from.  The number of records and the labels are treated as public.

    Attributes:
        labels: Different labels in order; empty for a model that writes.
        delta: The largest δ of the budget.
        base: Folder of the base model.
    """

    records: int
    labels: tuple[str, ...]
    delta: float
    base: Path


@dataclass(frozen=True)
class Plan:
    """A run, fixed before it starts.

    Attributes:
        account: Ledger account; accounts are never added to each other.
        history: Steps: mappings with ``rate``, ``noise_multiplier``, ``steps``, ``label``.
        epsilon: Their price at ``delta``.
        config: What the worker is told, plain data.
        shown: The settings as the client sees them, plain data.
    """

    account: str
    history: tuple[Mapping[str, Any], ...]
    epsilon: float
    delta: float
    config: Mapping[str, Any]
    shown: Mapping[str, Any]


@dataclass
class Work:
    """What a run gets from its worker.

    Attributes:
        method: Name of the method.
        config: `Plan.config`.
        base: Folder of the base model.
        labels: Classes in order.
        rows: Training rows.
        public: Rows of the validation file, which is public.
        seed: Of the initial values of a new head; never of noise.
        folder: Where checkpoints and, on rank 0, the result go.
        should_stop: To be asked before every step; processes must come to one decision.
        take: Writes down that a noisy step is taken, before it is, on rank 0; steps are counted from 0
            over the whole run.
        emit: Reports progress, on rank 0: message, kind, public figures.
        rank, processes: Which of how many; they have joined a process group when there are several.
    """

    method: str
    config: Mapping[str, Any]
    base: Path
    labels: tuple[str, ...]
    rows: Rows = field(repr=False)
    public: Rows | None = field(repr=False)
    seed: int
    folder: Path
    should_stop: Callable[[], bool]
    take: Callable[[int], None]
    emit: Callable[[str, EventKind, Mapping[str, Any]], None]
    rank: int = 0
    processes: int = 1


@dataclass(frozen=True)
class Result:
    """What a run leaves: files in the job's folder, the first being what `Method.load` reads."""

    files: tuple[Path, ...]
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """An answer of a tuned model.  ``scores``: label to probability, for a classifier."""

    text: str
    scores: Mapping[str, float] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Tuned(Protocol):
    """A loaded model.  Not thread-safe."""

    def answer(
        self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
    ) -> Answer: ...


class Method(Protocol):
    """One method of fine-tuning."""

    @property
    def type(self) -> str:
        """As ``method.type`` names it."""

    def plan(self, given: Mapping[str, Any], facts: Facts) -> Plan:
        """Check the client's settings and price the run.  Raises MethodError."""

    def epsilon(self, histories: Sequence[Sequence[Mapping[str, Any]]], delta: float) -> float:
        """Return what all these steps on one data set cost together at ``delta``."""

    def run(self, work: Work) -> Result | None:
        """Train; None when `Work.should_stop` said so, and on other ranks than 0.

        Resumes from ``work.folder``.
        """

    def load(self, package: Path, base: Path) -> Tuned:
        """Load what a run left."""
