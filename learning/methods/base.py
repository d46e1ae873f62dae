"""What a method of fine-tuning offers to jobs: a price, a run, and a model that answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ValidationError

from learning.rows import Rows
from privacy.accounting.charges import Charge
from privacy.ppft.encoder import TokenEncoder

EventKind = Literal["message", "metrics", "checkpoint"]
Reads = Literal["labels", "chat", "any"]
NO_ROWS = Rows("chat", (), ())
_Settings = TypeVar("_Settings", bound=BaseModel)


class MethodError(ValueError):
    """A configuration that cannot be run; the message says what to change.

    Attributes:
        field: The setting at fault, relative to the method's own.
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class Unanswerable(ValueError):
    """A conversation that a model cannot answer; the message says why, and quotes nothing."""


def settings_of(kind: type[_Settings], given: Mapping[str, Any]) -> _Settings:
    """Return a client's settings, "auto" meaning left out.  Raises MethodError."""
    try:
        return kind.model_validate({k: v for k, v in given.items() if v != "auto"})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = ".".join(str(part) for part in fault["loc"])
        if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1:
            known = ", ".join(sorted(kind.model_fields))
            raise MethodError(f"there is no such setting; there are: {known}", path) from None
        raise MethodError(fault["msg"].removeprefix("Value error, "), path or None) from None


def checkpoint_interval(asked: int | None, steps: int) -> int:
    """Return the steps between checkpoints, which metrics come with: about five a run, at least every 20."""
    return asked or min(20, max(1, steps // 5))


class Site(Protocol):
    """What lies inside the trust boundary beside the data; a worker has none of it."""

    def encoder(self, name: str) -> TokenEncoder:
        """Return an encoder by its name.  Raises MethodError."""

    def decoder(self, name: str) -> Path:
        """Return the transformers folder of a decoder.  Raises MethodError."""


class Nowhere:
    """A site with nothing in it."""

    def encoder(self, name: str) -> TokenEncoder:
        raise MethodError(f"there is no encoder {name} here")

    def decoder(self, name: str) -> Path:
        raise MethodError(f"there is no decoder {name} here")


@dataclass(frozen=True)
class Facts:
    """What a plan is made from.  The number of records and the labels are treated as public.

    Attributes:
        labels: Different labels in order; empty unless the method reads labels.
        delta: The largest δ of the budget.
        base: Folder of the base model.
        rows: The records.
        site: Models that the plan may ask.
    """

    records: int
    labels: tuple[str, ...]
    delta: float
    base: Path
    rows: Rows = field(default=NO_ROWS, repr=False)
    site: Site = field(default_factory=Nowhere)


@dataclass(frozen=True)
class Plan:
    """A run, fixed before it starts.

    Attributes:
        history: What draws noise: mappings of the method's own, each with its number of ``steps``.
        steps: Length of the run.
        epsilon: Price of the history at ``delta``.
        config: What the worker is told, plain data.
        shown: The settings as the client sees them, plain data.
    """

    history: tuple[Mapping[str, Any], ...]
    steps: int
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
        decoder: What `Export.decoder` said.
        labels: Classes in order.
        rows: Training rows; none where the method exports instead.
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
    decoder: Path | None = None


@dataclass(frozen=True)
class Export:
    """What a worker gets instead of texts.

    Attributes:
        write: Writes it into the job's folder.
        decoder: Folder of the decoder that is trained.
        history: What was drawn, as `Plan.history`; it must not cost more.
        charges: The text of each record and what noising it costs.
        told: Said to the client.
        size: Bytes of rows that `write` writes.
    """

    write: Callable[[Path], None]
    decoder: Path
    history: tuple[Mapping[str, Any], ...]
    charges: Sequence[tuple[str, Charge]] = field(repr=False)
    told: str
    size: int = 0


@dataclass(frozen=True)
class Result:
    """What a run leaves: files in the job's folder, the first being what `Method.load` reads."""

    files: tuple[Path, ...]
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """An answer of a tuned model.

    Attributes:
        scores: Label to probability, for a classifier.
        is_cut: The text ends because no more tokens were asked for.
    """

    text: str
    scores: Mapping[str, float] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    is_cut: bool = False


class Tuned(Protocol):
    """A loaded model.  Not thread-safe."""

    def answer(self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> Answer:
        """Answer a conversation; ``options`` are those of a chat request.  Raises Unanswerable."""


class Method(Protocol):
    """One method of fine-tuning."""

    @property
    def type(self) -> str:
        """As ``method.type`` names it."""

    @property
    def account(self) -> str:
        """Account of the ledger, with a budget of its own; accounts are never added to each other."""

    @property
    def adjacency(self) -> str:
        """What the guarantee tells apart, in words."""

    def reads(self, base: Path) -> Reads:
        """Return which rows a base is trained with.  Raises MethodError: it cannot be trained."""

    def plan(self, given: Mapping[str, Any], facts: Facts) -> Plan:
        """Check the client's settings and price the run.  Raises MethodError."""

    def epsilon(self, histories: Sequence[Sequence[Mapping[str, Any]]], delta: float) -> float:
        """Return what all these steps on one data set cost together at ``delta``."""

    def run(self, work: Work) -> Result | None:
        """Train; None when `Work.should_stop` said so, and on other ranks than 0.

        Resumes from ``work.folder``.
        """

    def load(self, package: Path, base: Path, site: Site) -> Tuned:
        """Load what a run left."""


@runtime_checkable
class TextFree(Method, Protocol):
    """A method whose worker never sees texts."""

    def export(
        self,
        rows: Rows,
        public: Rows | None,
        config: Mapping[str, Any],
        base: Path,
        site: Site,
        cancelled: Callable[[], bool],
    ) -> Export | None:
        """Make what the worker gets, inside the trust boundary; None once cancelled.

        Raises:
            MethodError: It cannot be made.
        """

    def exported(self, folder: Path) -> bool:
        """Does a job's folder hold it?"""

    def decoder(self, base: Path, site: Site) -> Path:
        """Return `Export.decoder` of an export that was made before.  Raises MethodError."""
