"""The small study: both stages on real corpora on one CPU thread, restartable cell by cell.

Every cell (a window k, a noise, a stage) trains from exported files alone, is judged with its own prefix,
another record's and none, and leaves its numbers in ``results.json``; a finished cell is never done
again.  The cells stand in order of importance, and the budget of minutes ends the list early.
"""

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch

from learning.device import dtype_of
from learning.ppft import artefact, corpora, dataset
from learning.ppft.align import align_clean, align_noisy
from learning.ppft.decoder import Decoder, load_decoder
from learning.ppft.evaluate import Prefix, accuracy
from learning.ppft.export import Encoded, Limits, encode, export, export_public
from learning.ppft.model import Example, Lora, PpftModel
from learning.ppft.train import Plan, train, write_events
from privacy.ppft.accounting import cost
from privacy.ppft.encoder import TokenEncoder
from privacy.ppft.noise import Mechanism, Noise
from privacy.ppft.prompt import Record
from privacy.ppft.rows import obfuscate
from privacy.randomness import SystemRandomness

PUBLIC: Final = {"sst2": 4000, "ag_news": 3000}
DOMAIN: Final = {"sst2": 6000, "ag_news": 4000, "pri_ddx": 1549}
# Longer records and harder questions, in a run of their own.
FURTHER: Final = {
    "pri_nlice": 650,
    "pri_slja": 654,
    "mmlu": 2119,
    "squad2": 2627,
    "pubmedqa": 900,
    "medquad_intent": 3404,
}
_CLEAN: Final = math.inf


@dataclass(frozen=True, slots=True)
class Cell:
    """One run: ``epsilon`` infinite means no noise.

    Attributes:
        kind: ``stage2`` adapts to noised rows.  ``text`` feeds the text itself (upper bound),
            ``unadapted`` gives noised rows to the model that was adapted to clean ones (lower bound),
            ``further`` trains on `FURTHER` instead, with stage 1 alone.
    """

    k: int
    epsilon: float = _CLEAN
    mechanism: Mechanism = "laplace"
    kind: Literal["stage2", "text", "unadapted", "further"] = "stage2"

    @property
    def name(self) -> str:
        """Key in the results."""
        if self.kind != "stage2":
            return self.kind
        noise = "clean" if math.isinf(self.epsilon) else f"{self.mechanism}-{self.epsilon:g}"
        return f"k{self.k}-{noise}"


CELLS: Final = (
    Cell(4),
    Cell(4, 150.0),
    Cell(4, 75.0),
    Cell(8, 150.0),
    Cell(16, 150.0),
    Cell(4, 150.0, "gaussian"),
    Cell(4, kind="text"),
    Cell(4, 300.0),
    Cell(4, 30.0),
    Cell(8, 75.0),
    Cell(16, 75.0),
    Cell(4, 75.0, "gaussian"),
    Cell(8),
    Cell(16),
    Cell(4, kind="unadapted"),
    Cell(4, kind="further"),
)


@dataclass(frozen=True, slots=True)
class Study:
    """What the study works with.

    Attributes:
        folder: Where datasets, checkpoints, models and results go.
        data: The data collection.
        encoder: The client's encoder.
        decoder: Folder of the decoder; loaded anew for every cell, since LoRA changes it.
        minutes: Budget; a cell is not begun after it.
        steps: Optimiser steps of stage 1 and of stage 2.
        held_out: Records of each corpus for judging.
        share: Part of every corpus that is used, for tests.
        device: As torch names it.
    """

    folder: Path
    data: Path
    encoder: TokenEncoder
    decoder: Path
    minutes: float = 180.0
    steps: tuple[int, int] = (240, 100)
    held_out: int = 200
    share: float = 1.0
    device: str = "cpu"

    def records(self, name: str, sizes: dict[str, int], split: corpora.Split) -> list[Record]:
        """The first records of a corpus; training parts of the two stages do not overlap."""
        stream = corpora.read(name, self.data, split)
        if split == "eval":
            # Held-out files may be sorted by class: take them evenly, not from the top.
            items = list(stream)
            kept = items[:: max(1, len(items) // self.held_out)][: self.held_out]
        else:
            first = PUBLIC.get(name, 0) if sizes is DOMAIN else 0
            kept = list(islice(stream, first, sizes[name]))
        return kept[: max(16, int(len(kept) * self.share))]


class _Run:
    """The study under way: encoded corpora in memory, results on disk."""

    def __init__(self, study: Study, say: Callable[[str], None]) -> None:
        self.study = study
        self.say = say
        self.began = time.monotonic()
        self.results_file = study.folder / "results.json"
        self.public = self._encode(PUBLIC)
        self.domain = self._encode(DOMAIN)
        self.held = self._held(DOMAIN)

    def _encode(self, sizes: dict[str, int], tokens: int = 160) -> Encoded:
        records = [r for name in sizes for r in self.study.records(name, sizes, "train")]
        found = encode(records, self.study.encoder, 1, Limits(slots=tokens))
        self.say(f"encoded {len(found.records)} of {len(records)} records")
        return found

    def _held(self, sizes: dict[str, int], tokens: int = 160) -> dict[str, Encoded]:
        limits = Limits(slots=tokens)
        return {
            name: encode(self.study.records(name, sizes, "eval"), self.study.encoder, 1, limits)
            for name in sizes
        }

    def results(self) -> dict[str, Any]:
        """What is known so far, by cell."""
        if self.results_file.exists():
            found: dict[str, Any] = json.loads(self.results_file.read_text("utf-8"))
            return found
        return {}

    def keep(self, name: str, value: Any) -> None:
        """Record one cell's numbers, atomically."""
        results = {**self.results(), name: value}
        scratch = self.results_file.with_suffix(".part")
        scratch.write_text(json.dumps(results, indent=2) + "\n", "utf-8")
        os.replace(scratch, self.results_file)
        self.say(f"{name}: {json.dumps(value)}")

    def out_of_time(self) -> bool:
        return time.monotonic() - self.began > 60.0 * self.study.minutes

    def decoder(self) -> Decoder:
        device = self.study.device
        return load_decoder(self.study.decoder, device, dtype_of(torch.device(device)))

    def events(self, name: str) -> Callable[[dict[str, Any]], None]:
        def also(event: dict[str, Any]) -> None:
            if event["event"] != "checkpoint":
                self.say(f"{name} {json.dumps(event)}")

        return write_events(self.study.folder / "events" / f"{name}.jsonl", also)

    def stage_one(self, k: int) -> Path:
        """Return the model of stage 1 for a window, trained if it is not there."""
        folder = self.study.folder / "models" / f"k{k}-stage1"
        if (folder / "card.json").exists():
            return folder
        files = self.study.folder / "data" / f"k{k}-public"
        dataset.save(export_public(self.public, self.study.encoder, k, tuple(PUBLIC)), files)
        data = dataset.load(files)
        model, explained = self._aligned(data)
        before = self.judge(model, k, Noise.of(None), ("own",))
        point = self.study.folder / "checkpoints" / f"k{k}-stage1.pt"
        plan = Plan(steps=self.study.steps[0])
        done = train(model, data.examples(), plan, point, self.events(f"k{k}-stage1"))
        artefact.save(model, _card(model, data.meta, 1, done), folder)
        after = self.judge(model, k, Noise.of(None))
        self.keep(f"k{k}-stage1", {"explained": explained, "untrained": before, **after})
        return folder

    def _aligned(self, data: dataset.RowData) -> tuple[PpftModel, float]:
        model = PpftModel.create(self.decoder(), data.meta.dimensions, Lora())
        explained = align_clean(model, data)
        self.say(f"the first projection explains {explained:.2f} of the embeddings")
        return model, explained

    def further(self, cell: Cell) -> None:
        """Stage 1 alone on `FURTHER`, records of up to 400 tokens, judged corpus by corpus."""
        encoded, held = self._encode(FURTHER, 400), self._held(FURTHER, 400)
        data = export_public(encoded, self.study.encoder, cell.k, tuple(FURTHER))
        model, explained = self._aligned(data)
        point = self.study.folder / "checkpoints" / f"{cell.name}.pt"
        plan = Plan(steps=self.study.steps[0], batch=8)
        train(model, data.examples(), plan, point, self.events(cell.name))
        found = self.judge(model, cell.k, Noise.of(None), held=held)
        counts = {name: len(part.records) for name, part in held.items()}
        self.keep(cell.name, {"explained": explained, "judged": counts, **found})

    def stage_two(self, cell: Cell) -> None:
        """Adapt to noised rows of the domain and judge."""
        first = self.stage_one(cell.k)
        noise = Noise.of(cell.epsilon, cell.mechanism)
        files = self.study.folder / "data" / cell.name
        if not (files / "manifest.json").exists():  # each record is noised once, restarts included
            exported, _ = export(self.domain, self.study.encoder, cell.k, noise, tuple(DOMAIN))
            dataset.save(exported, files)
        data = dataset.load(files)
        costs = [cost(len(rows), data.meta.dimensions, noise) for rows in data.rows]
        model, card = artefact.load(first, self.decoder())
        point = self.study.folder / "checkpoints" / f"{cell.name}.pt"
        if noise.mechanism != "none":
            public = dataset.load(self.study.folder / "data" / f"k{cell.k}-public")
            align_noisy(model, public.rows[:3000], noise, SystemRandomness())
        plan = Plan(steps=self.study.steps[1], lr=5e-4)
        done = train(model, data.examples(), plan, point, self.events(cell.name))
        kept = _card(model, data.meta, 2, card.steps + done)
        folder = self.study.folder / "models" / cell.name
        artefact.save(model, replace(kept, corpora=(*card.corpora, *data.meta.corpora)), folder)
        size = (folder / "weights.safetensors").stat().st_size
        epsilon = float(np.mean([c.epsilon for c in costs]))
        spent = {
            "slots": float(np.mean([c.slots for c in costs])),
            "epsilon_per_record": epsilon if math.isfinite(epsilon) else None,
        }
        self.keep(cell.name, {**self.judge(model, cell.k, noise), **spent, "bytes": size})

    def lower_bound(self, cell: Cell) -> None:
        """What is left of the model of clean rows when rows are noised and nothing adapts to that."""
        clean = Cell(cell.k)
        if clean.name not in self.results():
            self.stage_two(clean)
        model, _ = artefact.load(self.study.folder / "models" / clean.name, self.decoder())
        found = {
            f"{epsilon:g}": self.judge(model, cell.k, Noise.of(epsilon), ("own",))["own"]
            for epsilon in (300.0, 150.0, 75.0, 30.0)
        }
        self.keep(cell.name, found)

    def upper_bound(self, cell: Cell) -> None:
        """The same decoder, LoRA and steps, fed with the text itself."""
        model = PpftModel.create(self.decoder(), self.study.encoder.dimensions, Lora())
        empty = np.zeros((0, self.study.encoder.dimensions), np.float32)
        both = [self.public, self.domain]
        examples = [
            Example(empty, record.task, record.answer, text)
            for part in both
            for record, text in zip(part.records, part.texts, strict=True)
        ]
        untrained = self.judge(model, 4, Noise.of(None), ("text",))
        point = self.study.folder / "checkpoints" / "text.pt"
        plan = Plan(steps=self.study.steps[0], batch=8)
        train(model, examples, plan, point, self.events(cell.name))
        trained = self.judge(model, 4, Noise.of(None), ("text", "none"))
        self.keep("text", {**trained, "untrained": untrained})

    def judge(
        self,
        model: PpftModel,
        k: int,
        noise: Noise,
        prefixes: Sequence[Prefix] = ("own", "shuffled", "none"),
        held: dict[str, Encoded] | None = None,
    ) -> dict[str, dict[str, float]]:
        """Accuracy by prefix and corpus, on rows noised anew."""
        source = SystemRandomness()
        parts = self.held if held is None else held
        rows = {
            name: [obfuscate(item.states, k, noise, source) for item in part.states]
            for name, part in parts.items()
        }
        return {
            prefix: {
                name: accuracy(model, part.records, rows[name], prefix, part.texts)
                for name, part in parts.items()
            }
            for prefix in prefixes
        }


def run(study: Study, cells: Sequence[Cell] = CELLS, say: Callable[[str], None] = print) -> bool:
    """Do the cells that are not done.

    Returns:
        True when all of them are; False when the budget ended first.
    """
    study.folder.mkdir(parents=True, exist_ok=True)
    under_way = _Run(study, say)
    for cell in cells:
        if cell.name in under_way.results():
            continue
        if under_way.out_of_time():
            say("the budget of minutes is used up; the same command goes on from here")
            return False
        work = {
            "stage2": under_way.stage_two,
            "text": under_way.upper_bound,
            "unadapted": under_way.lower_bound,
            "further": under_way.further,
        }
        work[cell.kind](cell)
    return True


def _card(model: PpftModel, meta: dataset.Meta, stage: int, steps: int) -> artefact.Card:
    return artefact.Card(
        meta.encoder,
        meta.dimensions,
        meta.k,
        model.decoder.name,
        stage,
        steps,
        meta.mechanism,
        meta.epsilon,
        meta.corpora,
        Lora(),
    )
