"""Wire shapes of fine-tuning jobs, their events and checkpoints."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from store.job_rows import Job, JobEvent

Key = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Value = Annotated[str, StringConstraints(max_length=512)]

# As many digits as are written, the first one below 8: what a column of 64 bits can hold.
_EVENT_ID: Final = re.compile(r"(?:ftckpt_|ftevent-)([0-7][0-9a-f]{15})")


class MethodChoice(BaseModel):
    """``method``: a type, and under the type's own name its settings."""

    model_config = ConfigDict(extra="allow")

    type: str = Field("dp_bitfit", min_length=1, max_length=40)

    @model_validator(mode="after")
    def _nothing_beside(self) -> Self:
        # A setting in the wrong place, dropped, would leave epsilon at its default.
        if any(v is not None for k, v in (self.model_extra or {}).items() if k != self.type):
            raise ValueError(
                'beside "type" only the settings may stand, under the name of the type: '
                '{"type": "dp_bitfit", "dp_bitfit": {"hyperparameters": {...}}}'
            )
        return self

    def settings(self) -> Any:
        """Return the settings, with or without OpenAI's level ``hyperparameters``."""
        own = (self.model_extra or {}).get(self.type) or {}
        if isinstance(own, dict) and set(own) == {"hyperparameters"}:
            own = own["hyperparameters"] or {}
        return own


class CreateJob(BaseModel):
    """The body of ``POST /v1/fine_tuning/jobs``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str = Field(min_length=1, max_length=200)
    training_file: str = Field(min_length=1, max_length=64)
    validation_file: str | None = Field(None, min_length=1, max_length=64)
    suffix: str | None = Field(None, pattern=r"^[A-Za-z0-9._-]{1,64}$")
    seed: int | None = Field(None, ge=0, le=2**31 - 1)
    method: MethodChoice = Field(default_factory=lambda: MethodChoice(type="dp_bitfit"))
    hyperparameters: dict[str, Any] | None = None
    metadata: dict[Key, Value] | None = Field(None, max_length=16)
    integrations: list[dict[str, Any]] | None = Field(None, max_length=0)

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.hyperparameters and self.method.settings():
            raise ValueError("give settings in method or in hyperparameters, not in both")
        return self


def event_number(identifier: str) -> int | None:
    """Return the number in an id of an event or a checkpoint; None for anything else."""
    found = _EVENT_ID.fullmatch(identifier)
    return None if found is None else int(found[1], 16)


def job_object(job: Job) -> dict[str, Any]:
    """Return a job as OpenAI shows it, with what it costs under ``penname``."""
    shown: Mapping[str, Any] = job.spec["shown"]
    epochs = shown.get("n_epochs")
    return {
        "id": job.id,
        "object": "fine_tuning.job",
        "created_at": int(job.created_at),
        "error": None if job.error is None else dict(job.error),
        "fine_tuned_model": job.private["name"] if job.status == "succeeded" else None,
        "finished_at": _seconds(job.finished_at),
        "hyperparameters": {
            # OpenAI's field is whole; the exact figure is among the method's own.
            "n_epochs": None if epochs is None else max(1, round(epochs)),
            "batch_size": shown.get("batch_size"),
            "learning_rate_multiplier": None,
        },
        "model": job.model,
        "organization_id": job.tenant_id,
        "result_files": list(job.result_files),
        "seed": job.seed,
        "status": job.status,
        "trained_tokens": None,
        "training_file": job.training_file,
        "validation_file": job.validation_file,
        "estimated_finish": _seconds(job.estimated_finish),
        "integrations": [],
        "metadata": job.private.get("metadata") or {},
        "method": {"type": job.method, job.method: {"hyperparameters": dict(shown)}},
        "penname": {
            "account": job.account,
            "adjacency": job.spec.get("adjacency", "add or remove one record"),
            "delta": job.delta,
            "epsilon_reserved": job.reserved_epsilon,
            "epsilon_spent": job.spent_epsilon,
            "steps_total": job.steps_total,
            "steps_done": job.steps_done,
            "steps_charged": job.steps_taken,
            "attempts": job.attempts,
            "engine": job.engine,
        },
    }


def event_object(event: JobEvent) -> dict[str, Any]:
    """Return an event as OpenAI shows it."""
    return {
        "id": f"ftevent-{event.number:016x}",
        "object": "fine_tuning.job.event",
        "created_at": int(event.created_at),
        "level": event.level,
        "message": event.message,
        "type": "message" if event.kind == "message" else "metrics",
        "data": dict(event.data),
    }


def checkpoint_object(job: Job, event: JobEvent) -> dict[str, Any]:
    """Return a checkpoint as OpenAI shows it."""
    step = int(event.data["step"])
    return {
        "id": f"ftckpt_{event.number:016x}",
        "object": "fine_tuning.job.checkpoint",
        "created_at": int(event.created_at),
        "fine_tuned_model_checkpoint": f"{job.private['name']}:ckpt-step-{step}",
        "fine_tuning_job_id": job.id,
        "step_number": step,
        "metrics": {
            "step": step,
            "full_valid_loss": event.data.get("valid_loss"),
            "full_valid_mean_token_accuracy": event.data.get("valid_accuracy"),
            "epsilon": event.data.get("epsilon"),
        },
    }


def _seconds(value: float | None) -> int | None:
    return None if value is None else int(value)
