"""The training loop: phases under one account, checkpoints, resume, data-parallel."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from learning.bitfit.accountant import COARSE, Accountant, calibrate
from learning.bitfit.added import add_biases, lacking
from learning.bitfit.card import facts, write_card
from learning.bitfit.checkpoint import Checkpoint, load_checkpoint, run_digest, save_checkpoint
from learning.bitfit.config import FineTuning, Phase
from learning.bitfit.data import Data
from learning.bitfit.delta import fingerprint, save_delta
from learning.bitfit.engine import PrivacySettings, PrivateModel, make_private
from learning.bitfit.errors import CheckpointError
from learning.bitfit.events import Event
from learning.bitfit.losses import Batch, Loss, classification_loss
from learning.bitfit.noise import NoiseSource, NoNoise
from learning.bitfit.plain import PlainModel
from learning.bitfit.processes import Processes
from learning.bitfit.sampler import PoissonSampler, microbatches
from learning.bitfit.select import select, stateful
from privacy.randomness import Randomness

# Changing these does not make another run of it.
_FREE = {"microbatch", "checkpoint_every", "report_loss"}


@dataclass(slots=True)
class TrainResult:
    """What a run leaves.

    Attributes:
        status: ``completed``, or ``stopped`` when ``should_stop`` said so.
        model: The trained model, all hooks removed.
        values: Name to trained value.
        account: Everything charged to the data set.
        card: Facts of the run.
        added: Layers that got an added bias.
        skipped: Examples without a finite gradient (not a private figure).
        bytes_reduced: Payload of gradient all-reduces of this process.
    """

    status: Literal["completed", "stopped"]
    model: nn.Module
    values: dict[str, Tensor]
    account: Accountant
    card: dict[str, Any]
    added: list[str]
    skipped: int
    bytes_reduced: int

    def save(self, folder: Path) -> Path:
        """Write ``delta.safetensors`` and its card into ``folder``; returns the delta's path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "delta.safetensors"
        save_delta(path, self.model, self.values, self.added, self.card)
        write_card(folder, self.card)
        return path


def train(
    model: nn.Module,
    data: Data,
    config: FineTuning,
    *,
    loss: Loss = classification_loss,
    account: Accountant | None = None,
    on_event: Callable[[Event], None] | None = None,
    checkpoint_dir: Path | None = None,
    should_stop: Callable[[], bool] | None = None,
    on_step: Callable[[int], None] | None = None,
    noise: NoiseSource | None = None,
    randomness: Randomness | None = None,
) -> TrainResult:
    """Fine-tune ``model`` in place; resumes from ``checkpoint_dir`` when a checkpoint is there.

    In a torchrun job every process calls this with the same arguments (and one shared folder).

    Args:
        model: On its device. Parameters to be trained are fp32 unless biases only.
        data: Records; one record is the unit of privacy.
        config: The run.
        loss: One value per example.
        account: What the data set has been charged before; charged further, step by step.
        on_event: Told of progress, on rank 0.
        checkpoint_dir: Where checkpoints go; none are written without it.
        should_stop: Asked before every step; True on any process writes a checkpoint and returns.
        on_step: Told, on rank 0, the number of every step of the whole run before its noise is drawn.
        noise: Injected by tests.
        randomness: Injected by tests.

    Raises:
        PrivacyError: The model, the data or the loss does not allow the guarantee.
        CheckpointError: The checkpoint belongs to something else.
        ValueError: The budget is spent.
    """
    run = _Run(model, data, config, loss, account or Accountant(), noise, randomness)
    run.on_event, run.on_step, run.folder = on_event, on_step, checkpoint_dir
    return run.execute(should_stop or (lambda: False))


class _Run:
    def __init__(
        self,
        model: nn.Module,
        data: Data,
        config: FineTuning,
        loss: Loss,
        account: Accountant,
        noise: NoiseSource | None,
        randomness: Randomness | None,
    ) -> None:
        self.model, self.data, self.config, self.loss = model, data, config, loss
        self.account, self.noise, self.randomness = account, noise, randomness
        self.on_event: Callable[[Event], None] | None = None
        self.on_step: Callable[[int], None] | None = None
        self.folder: Path | None = None
        self.processes = Processes()
        self.added = add_biases(model) if config.add_biases and lacking(model) else []
        self.names = {
            item.name
            for phase in config.phases
            for item in select(model, phase.method, config.head, config.exclude)
        }
        self.device = next(model.parameters()).device
        self.base = fingerprint(model, self.names)
        self.digest = run_digest(config.model_dump_json(exclude=_FREE))
        self.sigma = 0.0
        self.done = 0
        self.skipped = 0
        self.padding_checked = False
        self.shapes: dict[int, tuple[torch.Size, ...]] = {}  # of each record alone
        self.started = time.monotonic()
        self.done_before = 0

    def execute(self, should_stop: Callable[[], bool]) -> TrainResult:
        self.processes.refuse_different(self.base)
        saved = load_checkpoint(self.folder, self.digest, self.base) if self.folder else None
        if saved is None:
            self.sigma = self._sigma()
            self.processes.share(self.model.get_parameter(name) for name in sorted(self.names))
        else:
            self._restore(saved)
        first = saved.phase if saved else 0
        stopped = False
        for number in range(first, len(self.config.phases)):
            resume = saved if saved and number == first else None
            stopped = self._phase(number, resume, should_stop)
            if stopped:
                break
        self._tell("stopped" if stopped else "done", self.config.phases[-1])
        return self._result("stopped" if stopped else "completed")

    def _sigma(self) -> float:
        config = self.config
        if not config.private:
            return 0.0
        if config.epsilon is None:
            return float(config.noise_multiplier or 0.0)
        plan = [(config.rate_of(phase), config.steps_of(phase)) for phase in config.phases]
        return calibrate(config.epsilon, config.target_delta, plan, self.account)

    def _restore(self, saved: Checkpoint) -> None:
        if set(saved.values) != self.names or not 0 <= saved.phase < len(self.config.phases):
            raise CheckpointError(
                "the checkpoint is of other parameters or phases; use a new folder"
            )
        self.account.load_state_dict(saved.account)
        self.sigma = saved.noise_multiplier
        with torch.no_grad():
            for name, value in saved.values.items():
                self.model.get_parameter(name).copy_(value)
        before = self.config.phases[: saved.phase]
        self.done = sum(self.config.steps_of(phase) for phase in before) + saved.step
        self.done_before = self.done

    def _phase(
        self, number: int, saved: Checkpoint | None, should_stop: Callable[[], bool]
    ) -> bool:
        """Run one phase; True when it was stopped."""
        phase = self.config.phases[number]
        engine = self._engine(phase)
        optimizer = self._optimizer(engine.parameters, phase)
        start = saved.step if saved else 0
        if saved and saved.optimizer:
            optimizer.load_state_dict(saved.optimizer)
        sampler = PoissonSampler(
            len(self.data),
            self.config.rate_of(phase),
            rank=self.processes.rank,
            world=self.processes.world,
            randomness=self.randomness,
        )
        self._train_mode()
        self._tell("phase", phase)
        steps = self.config.steps_of(phase)
        try:
            for step in range(start, steps):
                if self.processes.any(should_stop(), self.device):
                    self._save(number, step, optimizer, phase)
                    return True
                self._step(engine, optimizer, sampler, phase, step)
                is_last = step + 1 == steps and number + 1 == len(self.config.phases)
                if (step + 1) % self.config.checkpoint_every == 0 or is_last:
                    self._save(number, step + 1, optimizer, phase)
        finally:
            self.skipped += engine.skipped if isinstance(engine, PrivateModel) else 0
            engine.close()
        return False

    def _step(
        self,
        engine: PrivateModel | PlainModel,
        optimizer: torch.optim.Optimizer,
        sampler: PoissonSampler,
        phase: Phase,
        step: int,
    ) -> None:
        for group in optimizer.param_groups:
            group["lr"] = phase.learning_rate * self._schedule(step, phase)
        losses: list[Tensor] = []
        for indices in microbatches(sampler.draw(), self.config.microbatch):
            batch = self._batch(indices)
            if isinstance(engine, PrivateModel) and not self.padding_checked:
                self.padding_checked = self._verify_padding(engine, batch, indices)
            losses.append(engine.accumulate(self.loss, batch))
        if self.on_step is not None and self.processes.rank == 0:
            self.on_step(self.done)
        if self.config.private:
            # Before the release: a crash in between can only overstate what was spent.
            self.account.charge(self.config.rate_of(phase), self.sigma, label=phase.method)
        engine.step(optimizer)
        self.done += 1
        every = max(1, self.config.total_steps // 50)
        if self.done % every == 0:
            mean = torch.cat(losses).mean().item() if losses and self.config.report_loss else None
            self._tell("step", phase, mean)

    def _batch(self, indices: NDArray[np.int64]) -> dict[str, Tensor]:
        return {name: value.to(self.device) for name, value in self.data.batch(indices).items()}

    def _verify_padding(
        self, engine: PrivateModel, batch: dict[str, Tensor], indices: NDArray[np.int64]
    ) -> bool:
        """Look whether a record depends on the length of the others; False when that did not show."""
        shapes = _shapes(batch)
        for row, record in enumerate(indices.tolist()):
            one = indices[row : row + 1]
            if record not in self.shapes:
                self.shapes[record] = _shapes(self.data.batch(one))
            if self.shapes[record] != shapes:
                if engine.verify_padding(self.loss, batch, row, self._batch(one)):
                    return True
        return False

    def _schedule(self, step: int, phase: Phase) -> float:
        steps = self.config.steps_of(phase)
        rising = self.config.warmup * steps
        if step < rising:
            return (step + 1) / (rising + 1)
        return (steps - step) / max(1.0, steps - rising) if self.config.decay else 1.0

    def _engine(self, phase: Phase) -> PrivateModel | PlainModel:
        config = self.config
        autocast = torch.bfloat16 if config.autocast else None
        if not config.private:
            return PlainModel(
                self.model,
                config.batch_of(phase),
                method=phase.method,
                head=config.head,
                exclude=config.exclude,
                autocast=autocast,
                reduce=self.processes.reduce,
            )
        settings = PrivacySettings(
            self.sigma, config.batch_of(phase), config.max_grad_norm, config.clipping, autocast
        )
        return make_private(
            self.model,
            settings,
            method=phase.method,
            head=config.head,
            exclude=config.exclude,
            noise=self.noise if self.processes.rank == 0 else NoNoise(),
            reduce=self.processes.reduce,
        )

    def _optimizer(self, parameters: list[nn.Parameter], phase: Phase) -> torch.optim.Optimizer:
        decay = self.config.weight_decay
        if self.config.optimizer == "sgd":
            return torch.optim.SGD(parameters, lr=phase.learning_rate, weight_decay=decay)
        return torch.optim.AdamW(parameters, lr=phase.learning_rate, weight_decay=decay)

    def _train_mode(self) -> None:
        self.model.train()
        for module in stateful(self.model):
            module.eval()

    def _values(self) -> dict[str, Tensor]:
        parameters = dict(self.model.named_parameters())
        return {name: parameters[name].detach().cpu().clone() for name in sorted(self.names)}

    def _save(self, number: int, step: int, optimizer: torch.optim.Optimizer, phase: Phase) -> None:
        if self.folder is None:
            return
        if self.processes.rank == 0:
            state = optimizer.state_dict()
            checkpoint = Checkpoint(
                self.digest,
                self.base,
                number,
                step,
                self.sigma,
                self._values(),
                state,
                self.account.state_dict(),
            )
            save_checkpoint(self.folder, checkpoint)
        self.processes.barrier()
        self._tell("checkpoint", phase)

    def _tell(
        self,
        kind: Literal["phase", "step", "checkpoint", "stopped", "done"],
        phase: Phase,
        loss: float | None = None,
    ) -> None:
        if self.on_event is None or self.processes.rank != 0:
            return
        delta = self.config.target_delta
        epsilon = self.account.epsilon(delta, interval=COARSE) if self.config.private else None
        ran = self.done - self.done_before
        left = self.config.total_steps - self.done
        eta = (time.monotonic() - self.started) / ran * left if ran else None
        self.on_event(
            Event(kind, self.done, self.config.total_steps, phase.method, epsilon, delta, eta, loss)
        )

    def _result(self, status: Literal["completed", "stopped"]) -> TrainResult:
        values = self._values()
        card = facts(
            self.config,
            self.account,
            self.sigma,
            sum(value.numel() for value in values.values()),
            sum(parameter.numel() for parameter in self.model.parameters()),
            self.done,
        )
        return TrainResult(
            status,
            self.model,
            values,
            self.account,
            card,
            self.added,
            self.skipped,
            self.processes.bytes_reduced,
        )


def _shapes(batch: Batch) -> tuple[torch.Size, ...]:
    return tuple(batch[name].shape[1:] for name in sorted(batch))
