"""The run of a DP-BiTFiT job, in the worker."""

from collections.abc import Mapping
from typing import Any

from learning.bitfit.config import FineTuning
from learning.bitfit.events import Event
from learning.bitfit.trainer import train
from learning.device import own_device
from learning.methods.base import Result, Work
from learning.tasks import Prepared, task_of


def run(work: Work) -> Result | None:
    """Train, evaluate on the public rows, and save delta and model card."""
    length = int(work.config["max_length"])
    task = task_of(work.base)
    prepared = task.prepare(work.base, work.rows, work.labels, length)
    prepared.model.to(own_device())
    run = work.config["run"]
    exclude = (*run["exclude"], *prepared.exclude)
    config = FineTuning.model_validate({**run, "exclude": exclude})
    progress = _Progress(work, prepared, config)
    result = train(
        prepared.model,
        prepared.data,
        config,
        loss=prepared.loss,
        on_event=progress,
        checkpoint_dir=work.folder / "checkpoint",
        should_stop=work.should_stop,
        on_step=progress.take,
    )
    if result.status == "stopped" or work.rank:
        return None
    metrics = progress.metrics()
    result.card |= {"labels": list(work.labels), "max_length": length, "metrics": metrics}
    path = result.save(work.folder / "result")
    facts = {name: result.card[name] for name in ("trained_parameters", "model_parameters")}
    if work.processes > 1:
        facts |= {
            "processes": work.processes,
            "bytes_reduced": result.bytes_reduced,
            "bytes_of_full_gradients": 4 * facts["model_parameters"] * progress.taken,
        }
    return Result((path, path.with_name("README.md")), {**facts, **metrics})


class _Progress:
    """Counts steps before they are taken and reports what may be seen: never a training loss."""

    def __init__(self, work: Work, prepared: Prepared, config: FineTuning) -> None:
        self._work, self._prepared, self._config = work, prepared, config
        self.taken = 0

    def take(self, step: int) -> None:
        self._work.take(step)
        self.taken += 1

    def metrics(self) -> Mapping[str, float]:
        work = self._work
        if work.public is None:
            return {}
        length = int(work.config["max_length"])
        return task_of(work.base).evaluate(
            self._prepared, work.base, work.public, work.labels, length
        )

    def __call__(self, event: Event) -> None:
        if event.kind == "phase":
            self._work.emit(
                f"Phase {event.phase} from step {event.step}", "message", self._data(event)
            )
        elif event.kind == "checkpoint":
            data = {**self._data(event), **self.metrics()}
            self._work.emit(f"Checkpoint at step {event.step}", "checkpoint", data)
        elif event.kind == "step":
            spent = f"epsilon {event.epsilon:.4g}" if event.epsilon is not None else "not private"
            text = f"Step {event.step}/{event.total_steps}: {spent}"
            self._work.emit(text, "metrics", self._data(event))

    def _data(self, event: Event) -> dict[str, Any]:
        return {
            "step": event.step,
            "total_steps": event.total_steps,
            "phase": event.phase,
            "epsilon": event.epsilon,
            "delta": event.delta,
            "eta_seconds": event.eta_seconds,
        }
