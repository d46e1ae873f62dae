"""Generation after private fine-tuning: E2E restaurant descriptions with SmolLM2-135M and DP-BiTFiT-Add.

SmolLM2 has no biases: zero biases are added behind every Linear and norm and trained, nothing else. The
records are (meaning representation, text) pairs of the E2E challenge; several texts of one meaning
are several records, and the texts of the test part belong to meanings that training has not seen.

Perplexity is over the tokens of all reference texts. BLEU (sacrebleu) and ROUGE-L (rouge-score, the
best of the references) are of greedy answers, one a meaning. Restartable: every finished run is
appended to ``--log``.
"""

import argparse
import csv
import gzip
import json
import math
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any

import sacrebleu
import torch
from rouge_score.rouge_scorer import RougeScorer
from torch import Tensor

from connectors.weights import CHAT_MODEL, cache_folder, chat_model_gguf
from learning.bitfit import FineTuning, Phase, TensorData, train
from learning.bitfit.losses import IGNORED, causal_lm_loss
from learning.ppft.decoder import Decoder, convert_gguf, load_decoder

Pair = tuple[str, str]
METHODS = ("untrained", "DP-BiTFiT-Add", "BiTFiT-Add")


@dataclass(frozen=True)
class Settings:
    """The same for all runs; ``meanings`` of the test part are judged."""

    records: int = 8000
    batch: int = 256
    steps: int = 16
    rate: float = 2e-3
    microbatch: int = 16
    meanings: int = 60
    new_tokens: int = 60


def pairs(path: Path) -> list[Pair]:
    """(meaning, text) of one file of the challenge."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return [(row["mr"], row["ref"]) for row in csv.DictReader(file)]


def prompt(decoder: Decoder, meaning: str) -> list[int]:
    return [decoder.bos, *decoder.ids(f"{meaning}\nDescription:")]


def encode(decoder: Decoder, given: list[Pair]) -> TensorData:
    """Token ids, sorted by length; only those of the text are to be predicted."""
    rows = []
    for meaning, text in given:
        start = prompt(decoder, meaning)
        rows.append((start, [*decoder.ids(f" {text}"), decoder.eos]))
    rows.sort(key=lambda row: len(row[0]) + len(row[1]))
    longest = len(rows[-1][0]) + len(rows[-1][1])
    ids = torch.full((len(rows), longest), decoder.eos)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, IGNORED)
    for number, (start, text_ids) in enumerate(rows):
        whole = torch.tensor(start + text_ids)
        ids[number, : len(whole)] = whole
        mask[number, : len(whole)] = 1
        labels[number, len(start) : len(whole)] = whole[len(start) :]
    return TensorData({"input_ids": ids, "attention_mask": mask, "labels": labels})


@torch.no_grad()
def perplexity(decoder: Decoder, data: TensorData, device: str) -> float:
    loss = tokens = 0.0
    indices = torch.arange(len(data)).numpy()
    for start in range(0, len(data), 16):
        batch = {k: v.to(device) for k, v in data.batch(indices[start : start + 16]).items()}
        count = (batch["labels"][:, 1:] != IGNORED).sum(1)
        loss += float((causal_lm_loss(decoder.model, batch) * count).sum())
        tokens += int(count.sum())
    return math.exp(loss / tokens)


@torch.no_grad()
def write(decoder: Decoder, meaning: str, new_tokens: int, device: str) -> str:
    """Greedy answer, its first line."""
    ids: Tensor = torch.tensor([prompt(decoder, meaning)], device=device)
    out = decoder.model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=new_tokens,
        do_sample=False,
        eos_token_id=decoder.eos,
        pad_token_id=decoder.eos,
    )
    return decoder.text(out[0, ids.shape[1] :].tolist()).strip().split("\n")[0]


def judge(decoder: Decoder, test: list[Pair], settings: Settings, device: str) -> dict[str, Any]:
    decoder.model.eval()
    references: dict[str, list[str]] = {}
    for meaning, text in test:
        references.setdefault(meaning, []).append(text)
    # Evenly over the file, which is sorted by meaning.
    stride = max(1, len(references) // settings.meanings)
    chosen = list(islice(references, 0, stride * settings.meanings, stride))
    answers = [write(decoder, meaning, settings.new_tokens, device) for meaning in chosen]
    wanted = [references[meaning] for meaning in chosen]
    most = max(map(len, wanted))
    columns = [[refs[n] if n < len(refs) else None for refs in wanted] for n in range(most)]
    scorer = RougeScorer(["rougeL"], use_stemmer=False)
    rouge = [
        scorer.score_multi(refs, answer)["rougeL"].fmeasure
        for refs, answer in zip(wanted, answers, strict=True)
    ]
    judged = [(meaning, text) for meaning in chosen for text in references[meaning]]
    return {
        "perplexity": perplexity(decoder, encode(decoder, judged), device),
        "bleu": sacrebleu.corpus_bleu(answers, columns).score,
        "rouge_l": mean(rouge),
        "example": [chosen[0], answers[0]],
    }


def run(
    method: str, epsilon: float | None, settings: Settings, data: Path, device: str
) -> dict[str, Any]:
    torch.manual_seed(0)
    folder = convert_gguf(chat_model_gguf(), cache_folder(), CHAT_MODEL.sha256)
    decoder = load_decoder(folder, device)
    private = method.startswith("DP")
    facts: dict[str, Any] = {}
    started = time.monotonic()
    if method != "untrained":
        seen = pairs(data / "e2e_nlg" / "trainset.csv.gz")
        records = encode(decoder, seen[:: max(1, len(seen) // settings.records)])
        config = FineTuning(
            dataset_size=len(records),
            expected_batch=settings.batch,
            phases=(
                Phase(
                    epochs=settings.steps * settings.batch / len(records),
                    learning_rate=settings.rate,
                ),
            ),
            epsilon=epsilon,
            private=private,
            microbatch=settings.microbatch,
            decay=True,
            head=None,
            add_biases=True,
        )
        result = train(decoder.model, records, config, loss=causal_lm_loss, on_event=progress)
        facts = {
            "records": len(records),
            "steps": config.total_steps,
            "delta": config.target_delta if private else None,
            "trained": result.card["trained_parameters"],
        }
    facts["seconds"] = time.monotonic() - started
    test = pairs(data / "e2e_nlg" / "testset_w_refs.csv.gz")
    return {**facts, **judge(decoder, test, settings, device)}


def progress(event: Any) -> None:
    if event.kind == "step":
        print(f"step {event.step}/{event.total_steps}", file=sys.stderr, flush=True)


def table(results: list[dict[str, Any]]) -> str:
    lines = ["| method | epsilon | perplexity | BLEU | ROUGE-L |", "|---|---|---|---|---|"]
    for row in results:
        epsilon = "-" if row["epsilon"] is None else f"{row['epsilon']:g}"
        lines.append(
            f"| {row['method']} | {epsilon} | {row['perplexity']:.2f} | {row['bleu']:.1f} | "
            f"{row['rouge_l']:.3f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--quick", action="store_true", help="a few steps, under a minute")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--log", type=Path, help="JSON lines, read and continued")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--methods", nargs="*", default=METHODS, choices=METHODS)
    parser.add_argument("--epsilons", nargs="*", type=float, default=[8.0, 3.0])
    parser.add_argument("--records", type=int, default=Settings.records)
    parser.add_argument("--batch", type=int, default=Settings.batch)
    parser.add_argument("--steps", type=int, default=Settings.steps)
    parser.add_argument("--rate", type=float, default=Settings.rate)
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"--data {options.data} is no folder; name the one with the corpora")
    if options.json:  # before the run, not after hours of it
        options.json.parent.mkdir(parents=True, exist_ok=True)
    if options.device == "cpu":
        torch.set_num_threads(1)
    settings = Settings(options.records, options.batch, options.steps, options.rate)
    if options.quick:
        settings = Settings(records=64, batch=4, steps=2, microbatch=4, meanings=2, new_tokens=20)
        options.epsilons = [8.0]
    log = options.log or Path(tempfile.mkdtemp(), "bitfit-generation.jsonl")
    log.touch()
    results = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for method in options.methods:
        for epsilon in options.epsilons if method.startswith("DP") else [None]:
            key = {"method": method, "epsilon": epsilon, "settings": asdict(settings)}
            if any(all(row.get(k) == v for k, v in key.items()) for row in results):
                continue
            row = {**key, **run(method, epsilon, settings, options.data, options.device)}
            results.append(row)
            with open(log, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    print(table(results))
    if options.json:
        options.json.write_text(
            json.dumps({"ratios": ratios(results), "runs": results}, indent=1), encoding="utf-8"
        )


def ratios(results: list[dict[str, Any]]) -> dict[str, float]:
    """Perplexity of every run over that of the untrained model."""
    base = next((row["perplexity"] for row in results if row["method"] == "untrained"), None)
    if base is None:
        return {}
    return {
        f"perplexity_{row['method']}_epsilon_{row['epsilon']}_over_untrained": row["perplexity"]
        / base
        for row in results
        if row["method"] != "untrained"
    }


if __name__ == "__main__":
    main()
