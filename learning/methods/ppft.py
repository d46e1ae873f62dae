"""PPFT as a job: rows are noised once, inside; the worker trains from noised rows and answers alone.

Stage 2 adapts a PPFT model to the training file; stage 1 makes one from a causal model and public rows.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from learning.methods.base import (
    Export,
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
from learning.ppft.export import Limits
from learning.rows import Rows, text_of
from learning.tasks import is_causal
from privacy.ppft.accounting import ACCOUNT, DELTA, together
from privacy.ppft.noise import Noise
from privacy.ppft.prompt import Record, conversation, render
from privacy.ppft.rows import slots
from privacy.ppft.tasks import SPECS, Task, task_named

if TYPE_CHECKING:
    from learning.ppft.artefact import Card

# Loading peft takes seconds and only the worker needs it, so here it is only looked for.
if find_spec("peft") is None:
    raise ImportError("peft is not installed", name="peft")

ROWS: Final = "rows"
PUBLIC: Final = "public"
_EPSILON: Final = 75.0
# Nothing is learnt there, and the length of still longer noise would overflow in the end.
_LEAST_EPSILON: Final = 1e-6
_EPOCHS: Final = 3.0
_MOST_STEPS: Final = 1_000_000


class Settings(BaseModel):
    """``method.ppft.hyperparameters``; "auto" is the same as leaving a field out.

    Attributes:
        stage: 2 adapts a PPFT model to noised rows; 1 makes one from a causal model and public rows.
        public: Says that every row of the training file is public; needed for stage 1.
        task: What the model is asked for; ``answer`` writes freely.
        epsilon: Rate of the noise per unit of distance; a row costs up to twice that.
        k: Tokens pooled into one row; stage 2 has its base's.
        encoder: ``minilm``, or an encoder among the base models; stage 2 has its base's.
        lora_rank: Of stage 1; stage 2 has its base's.
        max_slots, max_answer: Rows, and characters of the answer; longer records are left out.
    """

    model_config = ConfigDict(extra="forbid")

    stage: Literal[1, 2] = 2
    public: bool = False
    task: str = "answer"
    epsilon: float | None = Field(None, ge=_LEAST_EPSILON, le=10_000)
    mechanism: Literal["laplace", "gaussian"] | None = None
    k: int | None = Field(None, ge=1, le=64)
    encoder: str | None = Field(None, min_length=1, max_length=100)
    lora_rank: int | None = Field(None, ge=1, le=256)
    n_epochs: float | None = Field(None, gt=0, le=10_000)
    steps: int | None = Field(None, ge=1, le=_MOST_STEPS)
    batch_size: int = Field(16, ge=1, le=4096)
    learning_rate: float = Field(1e-3, gt=0, le=1)
    warmup_steps: int = Field(20, ge=0, le=_MOST_STEPS)
    checkpoint_every: int | None = Field(None, ge=1)
    max_slots: int = Field(128, ge=1, le=512)
    max_answer: int = Field(1000, ge=1, le=10_000)

    @field_validator("task")
    @classmethod
    def _known(cls, value: str) -> str:
        if task_named(value) is Task.CHOICE:
            raise ValueError("choice needs options, which training rows do not have; use answer")
        return task_named(value).name.lower()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.n_epochs is not None and self.steps is not None:
            raise ValueError("give n_epochs or steps, not both")
        if self.stage == 1 and not self.public:
            raise ValueError(
                "stage 1 trains on rows without noise, their words included; set public to true if "
                "every row of the training file is public, or train stage 2"
            )
        if self.stage == 1 and (self.epsilon or self.mechanism):
            raise ValueError("stage 1 has no noise; leave epsilon and mechanism out")
        if self.stage == 2 and self.public:
            raise ValueError("public belongs to stage 1; stage 2 noises every row")
        return self


class Ppft:
    """See the module."""

    type: str = "ppft"
    account: str = ACCOUNT
    adjacency: str = "replace one record by another of as many rows, euclidean"

    def reads(self, base: Path) -> Reads:
        if not _is_trained(base) and not is_causal(base):
            raise MethodError("is neither a PPFT model (stage 2) nor one that writes (stage 1)")
        return "any"

    def plan(self, given: Mapping[str, Any], facts: Facts) -> Plan:
        settings = settings_of(Settings, given)
        config = _config(settings, facts.base)
        records = records_of(facts.rows, task_named(settings.task))
        _check_answers(records, facts.rows, task_named(settings.task))
        encoder = facts.site.encoder(config["encoder"])
        texts = [render(record) for record in records]
        kept = _kept(records, texts, encoder.lengths(texts), config)
        history = history_of(kept, config, encoder.dimensions)
        steps = _steps(settings, len(kept))
        config["checkpoint_every"] = checkpoint_interval(settings.checkpoint_every, steps)
        delta = DELTA if config["mechanism"] == "gaussian" else 0.0
        shown = {name: value for name, value in config.items() if value is not None}
        return Plan(
            history=history,
            steps=steps,
            epsilon=self.epsilon([history], delta),
            delta=delta,
            config={**config, "steps": steps},
            shown={
                **shown,
                "steps": steps,
                "n_epochs": steps * settings.batch_size / len(kept),
                "records": len(kept),
            },
        )

    def epsilon(self, histories: Sequence[Sequence[Mapping[str, Any]]], delta: float) -> float:
        """The dearest text's ε: every time its rows were noised, added up."""
        entries = [entry for history in histories for entry in history]
        return together(
            (
                (e["slots"] * e["steps"], e["dimensions"], Noise(e["mechanism"], e["epsilon"]))
                for e in entries
            ),
            delta or DELTA,
        )

    def export(
        self,
        rows: Rows,
        public: Rows | None,
        config: Mapping[str, Any],
        base: Path,
        site: Site,
        cancelled: Callable[[], bool],
    ) -> Export | None:
        from learning.methods._ppft_export import export

        return export(rows, public, config, self.decoder(base, site), site, cancelled)

    def exported(self, folder: Path) -> bool:
        return (folder / ROWS / "manifest.json").is_file()

    def decoder(self, base: Path, site: Site) -> Path:
        return site.decoder(read_base(base).decoder if _is_trained(base) else base.stem)

    def run(self, work: Work) -> Result | None:
        from learning.methods._ppft_run import run

        return run(work)

    def load(self, package: Path, base: Path, site: Site) -> Tuned:
        from learning.methods._ppft_run import TunedPpft

        return TunedPpft(package, site)


def history_of(
    noised: Iterable[tuple[str, int]], config: Mapping[str, Any], dimensions: int
) -> tuple[Mapping[str, Any], ...]:
    """Return what noising every row once draws; nothing in stage 1.

    A text that stands in several rows is noised in each of them, and averaging tells it as well as so
    many jobs on one row would, so its slots add up.

    Args:
        noised: Text and number of slots of each record.
    """
    if config["stage"] == 1:
        return ()
    slots_of: Counter[str] = Counter()
    for text, count in noised:
        slots_of[text] += count
    noise = {"mechanism": config["mechanism"], "epsilon": config["epsilon"]}
    entry = {"label": "rows", "slots": max(slots_of.values()), "dimensions": dimensions, **noise}
    return ({**entry, "steps": 1, "per_record": True},)


def records_of(rows: Rows, task: Task) -> list[Record]:
    """Return training rows as records: the answer is the label, or the last message."""
    if rows.kind == "classification":
        return [Record(task, question=row["text"], answer=row["label"]) for row in rows.rows]
    found = []
    for row in rows.rows:
        *before, last = row["messages"]
        turns = [(m["role"], text_of(m["content"])) for m in before]
        found.append(conversation(turns, task, text_of(last["content"])))
    return found


def read_base(base: Path) -> "Card":
    """Return the card of a PPFT model.  Raises MethodError."""
    from learning.ppft.artefact import ArtefactError, read_card

    try:
        return read_card(base)
    except ArtefactError:  # its message has the path
        raise MethodError("the base is damaged, or of another version; make it again") from None


def limits_of(config: Mapping[str, Any]) -> Limits:
    """Return the length filter of a job."""
    return Limits(config["max_slots"], config["max_answer"])


def _is_trained(base: Path) -> bool:
    return (base / "card.json").is_file()


def _config(settings: Settings, base: Path) -> dict[str, Any]:
    """Fill in what the base decides."""
    config = settings.model_dump(exclude={"n_epochs", "steps", "public"})
    if settings.stage == 1:
        if _is_trained(base):
            raise MethodError(
                "stage 1 starts from a causal model, and the base is a PPFT model", "stage"
            )
        names = {"k": 4, "encoder": "minilm", "lora_rank": 16}
        return {**config, **{k: config[k] or v for k, v in names.items()}}
    if not _is_trained(base):
        raise MethodError(
            "stage 2 adapts a PPFT model: take ppft-intent, or put the result of stage 1 into a folder "
            "of PENNAME_MODELS_DIR",
            "stage",
        )
    card = read_base(base)
    fixed = {"k": card.k, "encoder": card.encoder, "lora_rank": card.lora.r}
    for name, value in fixed.items():
        if config[name] not in (None, value):
            raise MethodError(f"is {value} in the base and cannot be changed; leave it out", name)
    mechanism = config["mechanism"] or ("laplace" if card.mechanism == "none" else card.mechanism)
    epsilon = config["epsilon"] or card.epsilon or _EPSILON
    return {**config, **fixed, "mechanism": mechanism, "epsilon": epsilon}


def _check_answers(records: Sequence[Record], rows: Rows, task: Task) -> None:
    labels = SPECS[task].labels
    for line, record in zip(rows.lines, records, strict=True):
        if labels and record.answer not in labels:
            raise MethodError(
                f"{task.name.lower()} has the answers {', '.join(labels)}, and that of line {line} is "
                "none of them; mend the row, or use the task answer",
                "task",
            )


def _kept(
    records: Sequence[Record],
    texts: Sequence[str],
    lengths: Sequence[int],
    config: Mapping[str, Any],
) -> list[tuple[str, int]]:
    """Texts and slots of the records that pass the length filter."""
    limits = limits_of(config)
    found = [
        (text, slots(length, config["k"]))
        for record, text, length in zip(records, texts, lengths, strict=True)
        if len(record.answer) <= limits.answer
    ]
    kept = [(text, count) for text, count in found if 0 < count <= limits.slots]
    if not kept:
        raise MethodError(
            f"leaves no record: all are longer than {limits.slots} rows of {config['k']} tokens, or "
            f"their answers than {limits.answer} characters; raise max_slots or max_answer",
            "max_slots",
        )
    return kept


def _steps(settings: Settings, records: int) -> int:
    if settings.steps is not None:
        return settings.steps
    steps = math.ceil((settings.n_epochs or _EPOCHS) * records / settings.batch_size)
    if steps > _MOST_STEPS:
        raise MethodError(f"gives {steps} steps and {_MOST_STEPS} are possible", "n_epochs")
    return steps


METHOD: Final = Ppft()
