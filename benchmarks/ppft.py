"""The embedding-only backend: bytes, milliseconds, tokens per second, accuracy, attacks.

`wire_bytes_over_text` is the payload over the UTF-8 text it stands for, at k = 4 with I8 rows.
`server_tokens_per_s_over_text_decoder` compares answers generated from a prefix with the same decoder
and LoRA fed with the text's own tokens, prefill included.  Accuracy is the shipped intent model's on
held-out questions, or that of `--model FOLDER --corpus NAME`.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from connectors.token_encoder import token_encoder
from connectors.weights import CHAT_MODEL, cache_folder, chat_model_gguf
from learning.device import claim, dtype_of
from learning.ppft import artefact, corpora
from learning.ppft.attacks.patients import read_patients
from learning.ppft.attacks.report import Target, rows_attacked
from learning.ppft.decoder import Decoder, convert_gguf, load_decoder
from learning.ppft.evaluate import accuracy
from learning.ppft.export import Limits, encode
from learning.ppft.generate import Sampling, generate
from learning.ppft.model import Example, PpftModel
from learning.ppft.shipped import INTENT
from privacy.ppft.accounting import cost
from privacy.ppft.encoder import TokenEncoder
from privacy.ppft.noise import Noise
from privacy.ppft.rows import obfuscate
from privacy.ppft.tasks import Task
from privacy.ppft.wire import Payload, pack
from privacy.randomness import SystemRandomness

NEWS = (
    "The insurer Brunnholt Glaswerke said on Monday that claims from the storm in the north would "
    "lower its profit for the quarter, and that it would sell its stake in a shipping firm. "
)
RANDOM = SystemRandomness()


def milliseconds(call: Callable[[], object], runs: int) -> float:
    """Median time of a call."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def rows_of(text: str, encoder: TokenEncoder, k: int, noise: Noise) -> np.ndarray:
    return obfuscate(encoder.encode([text])[0].states, k, noise, RANDOM)


def client(encoder: TokenEncoder, runs: int) -> dict[str, Any]:
    """Cost of the client's side for 512 tokens, by step, and the charge at ε = 75."""
    text = NEWS * 40
    found = encoder.encode([text])[0]
    states = found.states[:512]
    text = text[: int(found.offsets[511, 1])]
    noise = Noise("laplace", 75.0)
    spent = cost(128, states.shape[1], noise)
    return {
        "encode_ms": milliseconds(lambda: encoder.encode([text]), runs),
        "pool_and_noise_ms": milliseconds(lambda: obfuscate(states, 4, noise, RANDOM), runs),
        "tokens": 512,
        "slots": 128,
        "epsilon_per_slot": spent.epsilon_per_slot,
        "epsilon_per_record": spent.epsilon,
    }


def wire(encoder: TokenEncoder) -> dict[str, float]:
    """Payload bytes over text bytes, by window and type of the rows."""
    text = NEWS * 3
    found = {}
    for k in (4, 8, 16):
        rows = rows_of(text, encoder, k, Noise())
        payload = Payload(rows, Task.ANSWER, k, 128, 0.0, False, time.time_ns() // 10**6, bytes(16))
        for kind in ("int8", "float16"):
            body = pack(payload, "int8" if kind == "int8" else "float16")
            found[f"k{k}_{kind}"] = len(body) / len(text.encode())
    return found


def speed(
    model: PpftModel, encoder: TokenEncoder, tokens: int, batches: Sequence[int]
) -> dict[str, Any]:
    """Tokens per second by batch, from a prefix (k = 4) and from the text; no answer ends early."""
    model = replace(model, decoder=replace(model.decoder, eos=-1))
    text = NEWS * 3
    rows = rows_of(text, encoder, 4, Noise())
    empty = rows[:0]
    found: dict[str, Any] = {
        "prompt_slots": len(rows),
        "prompt_tokens": len(model.decoder.ids(text)),
    }
    for batch in batches:
        found[f"prefix_batch_{batch}"] = _per_second(
            model, Example(rows, Task.ANSWER), batch, tokens
        )
    found["text_batch_4"] = _per_second(model, Example(empty, Task.ANSWER, text=text), 4, tokens)
    return found


def _per_second(model: PpftModel, example: Example, batch: int, tokens: int) -> float:
    if model.device.type != "cpu":  # a GPU loads and chooses its kernels at their first call
        list(generate(model, [example] * batch, [Sampling(4)] * batch))
    start = time.perf_counter()
    # Every token comes to the CPU before the next is computed: nothing is left running at the end.
    made = sum(1 for _ in generate(model, [example] * batch, [Sampling(tokens)] * batch))
    return made / (time.perf_counter() - start)


def judged(
    model: PpftModel, card: artefact.Card, encoder: TokenEncoder, corpus: str, data: Path, n: int
) -> dict[str, Any]:
    """Accuracy with own, shuffled and no prefix at the noise that the model was made for."""
    records = list(corpora.read(corpus, data, "eval"))
    records = records[:: max(1, len(records) // n)][:n]
    held = encode(records, encoder, card.k, Limits())
    noise = Noise.of(card.epsilon, "gaussian" if card.mechanism == "gaussian" else "laplace")
    rows = [obfuscate(item.states, card.k, noise, RANDOM) for item in held.states]
    return {
        "own_prefix": accuracy(model, held.records, rows, "own"),
        "shuffled_prefix": accuracy(model, held.records, rows, "shuffled"),
        "no_prefix": accuracy(model, held.records, rows, "none"),
        "epsilon": card.epsilon,
        "records": float(len(held.records)),
    }


def attacks(
    encoder: TokenEncoder, data: Path, settings: Sequence[tuple[int, float]], most: int
) -> dict[str, Any]:
    """Retrieval and attribute inference on Pri-DDX, by (k, ε)."""
    known = read_patients(data, "train")[:most]
    victims = read_patients(data, "eval")[: most // 4]
    states = [encoder.encode([p.text for p in people]) for people in (known, victims)]
    target = Target(known, states[0], victims, states[1])
    return {
        f"k{k}_epsilon{epsilon:g}": rows_attacked(target, k, Noise("laplace", epsilon))
        for k, epsilon in settings
    }


def decoder(name: str) -> Decoder:
    folder = convert_gguf(chat_model_gguf(), cache_folder(), CHAT_MODEL.sha256)
    device = claim(name)
    return load_decoder(folder, str(device), dtype_of(device))


def measure(options: argparse.Namespace) -> dict[str, Any]:
    quick = options.quick
    encoder = token_encoder()
    model, card = artefact.load(options.model, decoder(options.device))
    served = speed(model, encoder, 16 if quick else 48, (1, 4) if quick else (1, 4, 16))
    size = wire(encoder)
    settings = (
        [(4, 75.0)] if quick else [(k, e) for k in (4, 8, 16) for e in (300.0, 150.0, 75.0, 30.0)]
    )
    return {
        "device": options.device,
        "ratios": {
            "wire_bytes_over_text": size["k4_int8"],
            "server_tokens_per_s_over_text_decoder": served["prefix_batch_4"]
            / served["text_batch_4"],
        },
        "accuracy": judged(
            model, card, encoder, options.corpus, options.data, 40 if quick else 300
        ),
        "client_512_tokens": client(encoder, 3 if quick else 15),
        "wire_bytes_over_text": size,
        "server_tokens_per_s": served,
        "attacks": attacks(encoder, options.data, settings, 120 if quick else 1549),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--json", type=Path, help="write the result to this file")
    parser.add_argument(
        "--data", type=Path, default=Path("../shared/data"), help="the data collection"
    )
    parser.add_argument("--model", type=Path, default=INTENT, help="folder of a trained model")
    parser.add_argument("--corpus", default="medquad_intent", help="corpus that judges it")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu or cuda, of the decoder")
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"--data {options.data} is no folder; name the one with the corpora")
    if options.json:  # before the run, not after hours of it
        options.json.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    result = measure(options)
    print(json.dumps(result, indent=2))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
