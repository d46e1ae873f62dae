"""The run of a PPFT job, in the worker: rows and answers, never a text; and the model that answers."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from learning.device import dtype_of, own_device
from learning.methods.base import Answer, Result, Site, Unanswerable, Work
from learning.methods.ppft import PUBLIC, ROWS
from learning.ppft import artefact, dataset
from learning.ppft.align import align_clean, align_noisy
from learning.ppft.dataset import RowData
from learning.ppft.decoder import load_decoder
from learning.ppft.evaluate import score
from learning.ppft.generate import Sampling, answers, generate
from learning.ppft.model import Example, Lora, PpftModel
from learning.ppft.train import Event, Plan, train
from learning.rows import text_of
from privacy.ppft.noise import Noise
from privacy.ppft.prompt import Record, conversation, render
from privacy.ppft.rows import obfuscate, slots, unit
from privacy.ppft.tasks import SPECS, Task, task_named
from privacy.randomness import SystemRandomness

_BATCH: Final = 16
_GENERATED: Final = 64
_NEW_TOKENS: Final = 128
_MOST_TOKENS: Final = 1024
_MOST_SLOTS: Final = 512


def run(work: Work) -> Result | None:
    """Train, evaluate on the public rows, and save weights and card."""
    config = work.config
    data = dataset.load(work.folder / ROWS)
    public = work.folder / PUBLIC
    valid = dataset.load(public) if public.is_dir() else None
    model, card = _start(work, data, valid)
    plan = Plan(
        steps=config["steps"],
        batch=config["batch_size"],
        warm=config["warmup_steps"],
        lr=config["learning_rate"],
        lr_projection=config["learning_rate"],
        every=config["checkpoint_every"],
    )
    progress = _Progress(work, plan, lambda: _loss(model, card, valid))
    point = work.folder / "checkpoint" / "ppft.pt"
    done = train(model, data.examples(), plan, point, progress, work.should_stop)
    if done < plan.steps or work.rank:
        return None
    metrics = {**_loss(model, card, valid), **_accuracy(model, card, valid)}
    card = replace(card, stage=config["stage"], steps=card.steps + done, task=config["task"])
    artefact.save(model, card, work.folder / "result")
    trained = sum(p.numel() for p in model.trainable().values())
    facts = {"trained_parameters": trained, "records": len(data), **metrics}
    names = (artefact.WEIGHTS, artefact.CARD)
    return Result(tuple(work.folder / "result" / name for name in names), facts)


def _start(work: Work, data: RowData, valid: RowData | None) -> tuple[PpftModel, artefact.Card]:
    """The model before the first step; a checkpoint replaces its values."""
    device = own_device()
    decoder = load_decoder(work.decoder or "", str(device), dtype_of(device))
    torch.manual_seed(work.seed)
    if work.config["stage"] == 1:
        rank = work.config["lora_rank"]
        lora = Lora(r=rank, alpha=2 * rank)
        model = PpftModel.create(decoder, data.meta.dimensions, lora)
        align_clean(model, data)
        meta = data.meta
        card = artefact.Card(meta.encoder, meta.dimensions, meta.k, decoder.name, lora=lora)
        return model, card.of(meta)
    model, card = artefact.load(work.base, decoder)
    card.check(data.meta)
    if card.stage == 1 and valid is not None:
        align_noisy(model, valid.rows, _noise(card.of(data.meta)), SystemRandomness())
    return model, card.of(data.meta)


def _noise(card: artefact.Card) -> Noise:
    return Noise.of(card.epsilon, "gaussian" if card.mechanism == "gaussian" else "laplace")


def _noised(card: artefact.Card, valid: RowData) -> list[Example]:
    """Public rows as the model meets rows; noised anew every time."""
    noise, random = _noise(card), SystemRandomness()
    drawn = [noise.draw(len(rows), valid.meta.dimensions, random) for rows in valid.rows]
    return [
        replace(e, rows=unit(e.rows + d).astype(np.float32))
        for e, d in zip(valid.examples(), drawn, strict=True)
    ]


@torch.inference_mode()
def _loss(model: PpftModel, card: artefact.Card, valid: RowData | None) -> dict[str, float]:
    if valid is None:
        return {}
    examples, training = _noised(card, valid), model.network.training
    batches = [examples[i : i + _BATCH] for i in range(0, len(examples), _BATCH)]
    model.network.eval()
    total = sum(float(model.loss(batch)) * len(batch) for batch in batches)
    model.network.train(training)
    return {"valid_loss": total / len(examples)}


def _accuracy(model: PpftModel, card: artefact.Card, valid: RowData | None) -> dict[str, float]:
    """Share of right answers among the first public rows; token F1 where answers are free."""
    if valid is None:
        return {}
    examples = _noised(card, valid)[:_GENERATED]
    right = 0.0
    for start in range(0, len(examples), _BATCH):
        batch = examples[start : start + _BATCH]
        for example, text in zip(batch, answers(model, batch), strict=True):
            right += score(Record(example.task, answer=example.answer), text)
    name = "valid_accuracy" if SPECS[examples[0].task].labels else "valid_token_f1"
    return {name: right / len(examples)}


class _Progress:
    """Reports what may be seen: never a training loss."""

    def __init__(self, work: Work, plan: Plan, metrics: Callable[[], dict[str, float]]) -> None:
        self._work, self._plan, self._metrics = work, plan, metrics
        self._began, self._from = time.monotonic(), 0
        if work.rank == 0:
            work.emit("Training begins.", "message", {})

    def __call__(self, event: Event) -> None:
        kind = event["event"]
        if self._work.rank or kind == "done":
            return
        if kind == "resumed":
            self._from = event["step"]
            self._work.emit(f"Training goes on from step {event['step']}.", "message", {})
        elif kind == "damaged":
            told = "The checkpoint cannot be read; training begins anew."
            self._work.emit(told, "message", {})
        elif kind == "checkpoint":
            data = {**self._data(event), **self._metrics()}
            self._work.emit(f"Checkpoint at step {event['step']}", "checkpoint", data)
        else:
            text = f"Step {event['step']}/{self._plan.steps}"
            self._work.emit(text, "metrics", self._data(event))

    def _data(self, event: Event) -> Mapping[str, Any]:
        step, total = event["step"], self._plan.steps
        ran = step - self._from
        eta = (time.monotonic() - self._began) / ran * (total - step) if ran > 0 else None
        return {"step": step, "total_steps": total, "eta_seconds": eta}


class TunedPpft:
    """A PPFT model that encodes, noises and answers in one process.

    Raises:
        ArtefactError: The package is none, or belongs to another decoder.
        MethodError: Its encoder or decoder is not here.
    """

    def __init__(self, package: Path, site: Site) -> None:
        self._card = artefact.card_within(package)
        self._encoder = site.encoder(self._card.encoder)
        decoder = load_decoder(site.decoder(self._card.decoder))
        self._model = artefact.load_weights(package, self._card, decoder)
        self._task = task_named(self._card.task) if self._card.task else Task.ANSWER

    def answer(self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> Answer:
        """Answer from rows noised like those that the model was trained on."""
        rows = self._rows(messages)
        asked = options.get("max_completion_tokens") or options.get("max_tokens") or _NEW_TOKENS
        sampling = Sampling(min(int(asked), _MOST_TOKENS), float(options.get("temperature") or 0.0))
        steps = list(generate(self._model, [Example(rows, self._task)], [sampling]))
        text, last = "".join(step.text for step in steps), steps[-1]
        return Answer(text.strip(), {}, len(rows), last.tokens, last.finish == "length")

    def _rows(self, messages: Sequence[Mapping[str, Any]]) -> NDArray[np.float32]:
        turns = [(str(m.get("role")), text_of(m.get("content"))) for m in messages]
        try:
            text = render(conversation(turns, self._task))
        except ValueError as error:
            raise Unanswerable(str(error)) from None
        count = slots(self._encoder.lengths([text])[0], self._card.k)
        if not 0 < count <= _MOST_SLOTS:
            raise Unanswerable(
                f"the conversation has {count} rows of {self._card.k} tokens; 1 to {_MOST_SLOTS} can "
                "be answered"
            )
        (states,) = self._encoder.encode([text])
        return obfuscate(states.states, self._card.k, _noise(self._card), SystemRandomness())
