"""Accuracy of private fine-tuning on public data sets, with all-MiniLM-L6-v2.

The model is the encoder, mean pooling, and a linear head. Every run trains the head first, on
features computed once, and then (unless only the head is trained) goes on in the whole model; both
parts are charged to one account, with one noise multiplier calibrated for the two together.
Embeddings stay frozen. Records are sorted by length, so that neighbours in a batch need little
padding.

Restartable: every finished run is appended to ``--log`` (JSON lines) and not repeated.
"""

import argparse
import csv
import gzip
import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertModel
from transformers.utils import logging as transformers_logging

from connectors.weights import MINILM_CONFIG, MINILM_TOKENIZER, MINILM_WEIGHTS
from learning.bitfit import Accountant, FineTuning, Phase, TensorData, calibrate, tokenized, train

Texts = list[tuple[str, ...]]
MAX_LENGTH = 64
# The methods and what follows the head: (method, share of the epochs, learning rate, private).
METHODS: dict[str, tuple[list[tuple[str, float, float]], bool]] = {
    "last layer": ([], False),
    "BiTFiT": ([("bitfit", 1.0, 2e-3)], False),
    "full": ([("full", 1.0, 5e-5)], False),
    "DP last layer": ([], True),
    "DP-BiTFiT": ([("bitfit", 1.0, 2e-3)], True),
    "X+BiTFiT": ([("full", 0.5, 2e-4), ("bitfit", 0.5, 2e-3)], True),
    "DP full": ([("full", 1.0, 2e-4)], True),
}


@dataclass(frozen=True)
class Task:
    """A data set: texts and labels of both parts."""

    train: Texts
    train_labels: list[int]
    test: Texts
    test_labels: list[int]

    @property
    def classes(self) -> int:
        return max(self.train_labels) + 1


def rows(path: Path) -> Iterator[list[str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]


def sst2(data: Path) -> Task:
    """The 67,349 rows of GLUE's training part; tested on its 872 validation rows."""
    parts = [list(rows(data / "sst2" / f"{name}.tsv.gz")) for name in ("train", "dev", "test")]
    seen = parts[0] + parts[1]
    return Task(
        [(text,) for text, _ in seen],
        [int(label) for _, label in seen],
        [(text,) for text, _ in parts[2]],
        [int(label) for _, label in parts[2]],
    )


def qnli(data: Path) -> Task:
    """GLUE's validation part only (5,463 rows): the first 4,463 for training, the rest for the test."""
    pairs: Texts = [(q, s) for _, q, s, _ in rows(data / "qnli" / "dev.tsv.gz")]
    labels = [int(r[3] == "entailment") for r in rows(data / "qnli" / "dev.tsv.gz")]
    return Task(pairs[:-1000], labels[:-1000], pairs[-1000:], labels[-1000:])


def ag_news(data: Path) -> Task:
    """10,000 rows of the training part; the official test part."""
    names = ["World", "Sports", "Business", "Sci/Tech"]
    seen = [r for r in rows(data / "ag_news" / "extra_dev_from_train.tsv.gz") if r[-1] in names]
    with gzip.open(data / "ag_news" / "test.jsonl.gz", "rt", encoding="utf-8") as file:
        test = [json.loads(line) for line in file]
    return Task(
        [(text,) for text, _ in seen],
        [names.index(label) for _, label in seen],
        [(f"{row['title']}. {row['description']}",) for row in test],
        [row["label"] for row in test],
    )


def financial_phrasebank(data: Path) -> Task:
    """4,846 sentences; every fifth is for the test."""
    names = ["negative", "neutral", "positive"]
    path = data / "financial_phrasebank" / "all_50agree.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        all_rows = [json.loads(line) for line in file]
    seen = [row for number, row in enumerate(all_rows) if number % 5]
    test = all_rows[::5]
    return Task(
        [(row["content"],) for row in seen],
        [names.index(row["label"]) for row in seen],
        [(row["content"],) for row in test],
        [names.index(row["label"]) for row in test],
    )


TASKS = {
    "sst2": sst2,
    "qnli": qnli,
    "ag_news": ag_news,
    "financial_phrasebank": financial_phrasebank,
}


class Head(nn.Module):
    """The linear head alone, on cached features."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(width, classes)
        nn.init.zeros_(self.classifier.weight)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, features: Tensor) -> Any:
        return SimpleNamespace(logits=self.classifier(features))


class MeanPooled(nn.Module):
    """Encoder, mean of the token states brought to unit variance, linear head."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        folder = MINILM_WEIGHTS.verified().parent
        MINILM_CONFIG.verified()
        self.bert = BertModel.from_pretrained(
            folder,
            add_pooling_layer=False,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        self.classifier = Head(self.bert.config.hidden_size, classes).classifier

    def features(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask[:, :, None].to(states.dtype)
        mean = (states * mask).sum(1) / mask.sum(1)
        return F.layer_norm(mean, mean.shape[1:])

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        return SimpleNamespace(logits=self.classifier(self.features(input_ids, attention_mask)))


def encode(texts: Texts, labels: list[int]) -> TensorData:
    """Token ids, sorted by length."""
    tokenizer = Tokenizer.from_file(str(MINILM_TOKENIZER.verified()))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_LENGTH)
    inputs = [text if len(text) > 1 else text[0] for text in texts]
    ids = [encoding.ids for encoding in tokenizer.encode_batch(inputs)]
    order = sorted(range(len(ids)), key=lambda number: len(ids[number]))
    return tokenized([ids[number] for number in order], [labels[number] for number in order])


def batches(data: TensorData, size: int, device: str) -> Iterator[dict[str, Tensor]]:
    indices = torch.arange(len(data)).numpy()
    for start in range(0, len(data), size):
        batch = data.batch(indices[start : start + size])
        yield {name: tensor.to(device) for name, tensor in batch.items()}


@torch.no_grad()
def cached_features(model: MeanPooled, data: TensorData, device: str) -> TensorData:
    model.eval()
    found, labels = [], []
    for batch in batches(data, 64, device):
        labels.append(batch.pop("labels").cpu())
        found.append(model.features(**batch).cpu())
    return TensorData({"features": torch.cat(found), "labels": torch.cat(labels)})


@torch.no_grad()
def accuracy(model: nn.Module, data: TensorData, device: str) -> float:
    model.eval()
    right = 0
    for batch in batches(data, 64, device):
        labels = batch.pop("labels")
        right += int((model(**batch).logits.argmax(1) == labels).sum())
    return right / len(data)


@dataclass(frozen=True)
class Settings:
    """Hyper-parameters of all runs."""

    head_epochs: float = 10.0
    head_rate: float = 1e-2
    epochs: float = 1.0
    batch: int = 1000
    microbatch: int = 50


class Bench:
    """One data set, encoded once, with the features of the untouched encoder."""

    def __init__(self, name: str, data: Path, settings: Settings, device: str, limit: int) -> None:
        task = TASKS[name](data)
        self.settings, self.device, self.classes = settings, device, task.classes
        train_texts, train_labels = task.train, task.train_labels
        test, test_labels = task.test, task.test_labels
        if limit:
            train_texts, train_labels = train_texts[:limit], train_labels[:limit]
            test, test_labels = test[: limit // 2], test_labels[: limit // 2]
        self.train, self.test = encode(train_texts, train_labels), encode(test, test_labels)
        self.size = len(self.train)
        encoder = MeanPooled(self.classes).to(device)
        self.train_features = cached_features(encoder, self.train, device)
        self.test_features = cached_features(encoder, self.test, device)

    def run(self, method: str, epsilon: float | None, seed: int) -> dict[str, Any]:
        """Train with one method; ``seed`` is the number of the repetition, noise has none."""
        parts, private = METHODS[method]
        batch = min(self.settings.batch, self.size // 4)
        head = Phase(
            method="last_layer",
            epochs=self.settings.head_epochs,
            learning_rate=self.settings.head_rate,
        )
        rest = tuple(
            Phase(method=kind, epochs=self.settings.epochs * share, learning_rate=rate)
            for kind, share, rate in parts
        )
        common: dict[str, Any] = {
            "dataset_size": self.size,
            "expected_batch": batch,
            "private": private,
            "decay": True,
            "exclude": ("*_embeddings.weight",),
        }
        account = Accountant()
        sigma = None
        if private:
            probe = FineTuning(**common, phases=(head, *rest), epsilon=epsilon)
            plan = [(probe.rate_of(phase), probe.steps_of(phase)) for phase in (head, *rest)]
            sigma = calibrate(probe.epsilon or 0.0, probe.target_delta, plan)
            common["noise_multiplier"] = sigma
        started = time.monotonic()
        first = Head(384, self.classes).to(self.device)
        config = FineTuning(**common, phases=(head,), microbatch=batch * 2)
        train(first, self.train_features, config, account=account)
        head_accuracy = accuracy(first, self.test_features, self.device)
        final = head_accuracy
        if rest:
            model = MeanPooled(self.classes).to(self.device)
            model.classifier.load_state_dict(first.classifier.state_dict())
            config = FineTuning(**common, phases=rest, microbatch=self.settings.microbatch)
            train(model, self.train, config, account=account)
            final = accuracy(model, self.test, self.device)
        delta = 1 / (2 * self.size)
        return {
            "accuracy": final,
            "head_accuracy": head_accuracy,
            "epsilon_spent": account.epsilon(delta) if private else None,
            "epsilon_replace_one": account.epsilon(delta, "replace_one") if private else None,
            "delta": delta,
            "sigma": sigma,
            "records": self.size,
            "seconds": time.monotonic() - started,
        }


def table(results: list[dict[str, Any]]) -> str:
    """A table for each data set, as Markdown: percent right by method and ε, spread over repetitions."""
    cells: dict[str, dict[str, dict[float, list[float]]]] = {}
    for row in results:
        family = row["method"].removeprefix("DP ").removeprefix("DP-")
        epsilon = math.inf if row["epsilon"] is None else row["epsilon"]
        found = cells.setdefault(row["task"], {}).setdefault(family, {})
        found.setdefault(epsilon, []).append(100 * row["accuracy"])
    lines = []
    for task, families in cells.items():
        columns = sorted({e for found in families.values() for e in found}, reverse=True)
        heads = ["not private" if math.isinf(e) else f"ε = {e:g}" for e in columns]
        lines += ["", f"| {task} | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
        for family, found in families.items():
            shown = " | ".join(mean_and_spread(found.get(e, [])) for e in columns)
            lines.append(f"| {family} | {shown} |")
    return "\n".join(lines[1:])


def mean_and_spread(values: list[float]) -> str:
    """``81.9``, or ``81.9 ± 0.4 (3)`` for three repetitions."""
    if not values:
        return "-"
    mean = f"{statistics.mean(values):.1f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.1f} ({len(values)})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--quick", action="store_true", help="one small data set, under a minute")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--log", type=Path, help="JSON lines, read and continued")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--epsilons", nargs="*", type=float, default=[8.0, 4.0, 2.0, 1.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=float, default=Settings.epochs)
    parser.add_argument("--batch", type=int, default=Settings.batch)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"--data {options.data} is no folder; name the one with the corpora")
    if options.json:  # before the run, not after hours of it
        options.json.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    transformers_logging.set_verbosity_error()  # the unused pooler
    settings = Settings(epochs=options.epochs, batch=options.batch)
    if options.quick:
        options.tasks, options.epsilons, options.seeds = ["financial_phrasebank"], [8.0], 1
        options.methods = ["last layer", "DP last layer", "DP-BiTFiT"]
    log = options.log or Path(tempfile.mkdtemp(), "bitfit-accuracy.jsonl")
    log.touch()
    results = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    limit = 1200 if options.quick else 0
    for name in options.tasks:
        bench: Bench | None = None
        for seed, method, epsilon in plan(options):
            key = {"task": name, "method": method, "epsilon": epsilon, "seed": seed}
            key["settings"] = asdict(settings)
            if any(all(row.get(k) == v for k, v in key.items()) for row in results):
                continue
            bench = bench or Bench(name, options.data, settings, options.device, limit)
            row = {**key, **bench.run(method, epsilon, seed)}
            results.append(row)
            with open(log, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), file=sys.stderr, flush=True)
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps({"runs": results}, indent=1), encoding="utf-8")


def plan(options: argparse.Namespace) -> Iterator[tuple[int, str, float | None]]:
    """Runs in the order in which they matter."""
    for seed in range(options.seeds):
        for method in options.methods:
            private = METHODS[method][1]
            for epsilon in options.epsilons if private else [None]:
                yield seed, method, epsilon


if __name__ == "__main__":
    main()
