"""Time and peak memory of one training step: private and not, biases and everything.

Random weights in the shapes of MiniLM, BERT-base, GPT-2 small and ViT-base. Each method runs in its
own process. On a CPU the processes take turns, step by step, so that a busy machine slows all alike.
Time on a CPU is processor time of one thread, the median of the repetitions. Memory is weights plus
the peak of live tensor bytes of a step: counted at the dispatcher on a CPU, by the allocator on a GPU.

Dropout is 0 in every method. ``full`` and ``bitfit`` are plain PyTorch;
Opacus is driven as its documentation says, without its data loader.
"""

import argparse
import gc
import json
import math
import multiprocessing
import statistics
import sys
import time
import warnings
import weakref
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    ViTConfig,
    ViTForImageClassification,
)

from learning.bitfit import PrivacySettings, classification_loss, make_private
from learning.bitfit.select import find_head

METHODS = ("full", "bitfit", "dp_full_opacus", "dp_full_ghost", "dp_bitfit_opacus", "dp_bitfit")
EMBEDDINGS = (
    "*word_embeddings*",
    "*.position_embeddings.weight",
    "*token_type_embeddings*",
    "*.wte.*",
    "*.wpe.*",
)
# Bare parameters of ViT, for which neither Opacus nor we have per-example gradients.
BARE = ("*cls_token", "*embeddings.position_embeddings")


@dataclass(frozen=True)
class Shape:
    """What is measured: a model's shape, tokens of a record, records of a batch."""

    model: str
    length: int
    batch: int


QUICK = [Shape("minilm", 64, 8)]
CPU = [
    *(Shape("minilm", length, 8) for length in (64, 128, 256, 512, 1024)),
    *(Shape("minilm", 64, batch) for batch in (16, 32, 64)),
    Shape("bert-base", 64, 8),
    Shape("gpt2-small", 64, 8),
    Shape("vit-base", 197, 4),
]
CUDA = [
    *(Shape("bert-base", length, 32) for length in (64, 128, 256, 512)),
    Shape("bert-base", 128, 8),
    Shape("bert-base", 128, 64),
    Shape("minilm", 256, 64),
    *(Shape("gpt2-small", length, 8) for length in (128, 512, 1024)),
    Shape("vit-base", 197, 64),
]
# The overhead over BiTFiT against the length, at a constant number of tokens.
FLAT_QUICK = [Shape("minilm", 64, 8), Shape("minilm", 256, 2)]
FLAT = [Shape("minilm", length, 1024 // length) for length in (64, 128, 256, 512, 1024)]
FLAT_CUDA = [Shape("gpt2-small", length, 16384 // length) for length in (64, 256, 1024)]


def bert(layers: int, width: int, heads: int, length: int) -> nn.Module:
    config = BertConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=max(512, length),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model: nn.Module = BertForSequenceClassification(config)
    return model


def build(shape: Shape) -> tuple[nn.Module, dict[str, Tensor]]:
    """A model with random weights and a batch for it."""
    torch.manual_seed(0)
    labels = torch.arange(shape.batch) % 2
    if shape.model == "vit-base":
        vit = ViTForImageClassification(ViTConfig(num_labels=2))
        return vit, {"pixel_values": torch.randn(shape.batch, 3, 224, 224), "labels": labels}
    if shape.model == "gpt2-small":
        config = GPT2Config(
            pad_token_id=0, num_labels=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
        )
        model: nn.Module = GPT2ForSequenceClassification(config)
    else:
        sizes = {"minilm": (6, 384, 12), "bert-base": (12, 768, 12)}[shape.model]
        model = bert(*sizes, shape.length)
    size = (shape.batch, shape.length)
    batch = {
        "input_ids": torch.randint(1000, 20000, size),
        "attention_mask": torch.ones(size, dtype=torch.int64),
        "position_ids": torch.arange(shape.length).expand(size).contiguous(),
        "labels": labels,
    }
    return model, batch


def choose(model: nn.Module, method: str, frozen: tuple[str, ...]) -> list[nn.Parameter]:
    """Freeze what the method does not train; the same rule for everybody."""
    from fnmatch import fnmatchcase

    head = find_head(model)
    chosen = []
    for name, parameter in model.named_parameters():
        wanted = name.startswith(head) or "full" in method or name.endswith("bias")
        wanted = wanted and not any(fnmatchcase(name, pattern) for pattern in frozen)
        parameter.requires_grad_(wanted)
        if wanted:
            chosen.append(parameter)
    return chosen


def stepper(
    method: str, shape: Shape, device: str, frozen: tuple[str, ...]
) -> tuple[Callable[[], None], int]:
    """A function that takes one training step, and the bytes of the model's weights."""
    model, batch = build(shape)
    model.to(device).train()
    batch = {name: value.to(device) for name, value in batch.items()}
    chosen = choose(model, method, frozen)
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    if method in ("full", "bitfit"):
        return plain(model, batch, chosen), weights
    if method.endswith("opacus"):
        return opacus(model, batch, chosen), weights
    settings = PrivacySettings(1.0, shape.batch, 1.0, "automatic")
    kind = "full" if "full" in method else "bitfit"
    private = make_private(model, settings, method=kind, exclude=frozen)  # type: ignore[arg-type]
    assert {id(p) for p in private.parameters} == {id(p) for p in chosen}
    optimizer = torch.optim.SGD(private.parameters, lr=1e-4)

    def step() -> None:
        private.accumulate(classification_loss, batch)
        private.step(optimizer)

    return step, weights


def plain(
    model: nn.Module, batch: dict[str, Tensor], chosen: list[nn.Parameter]
) -> Callable[[], None]:
    optimizer = torch.optim.SGD(chosen, lr=1e-4)

    def step() -> None:
        classification_loss(model, batch).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def opacus(
    model: nn.Module, batch: dict[str, Tensor], chosen: list[nn.Parameter]
) -> Callable[[], None]:
    wrapped = GradSampleModule(model, loss_reduction="mean", strict=False)
    optimizer = DPOptimizer(
        torch.optim.SGD(chosen, lr=1e-4),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        expected_batch_size=len(batch["labels"]),
    )

    def step() -> None:
        classification_loss(wrapped, batch).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


class LiveBytes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of the tensors that are alive, and their peak."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now: int = 0
        self.peak: int = 0
        self._known: dict[int, weakref.ref[Any]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        given = {
            t.untyped_storage()._cdata for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)
        }
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor):
                self._count(tensor.untyped_storage(), given)
        return out

    def _count(self, storage: Any, given: set[int]) -> None:
        key = storage._cdata
        if key in self._known or key in given:
            return
        size = storage.nbytes()

        def gone(_: Any) -> None:
            self.now -= size
            self._known.pop(key, None)

        self._known[key] = weakref.ref(storage, gone)
        self.now += size
        self.peak = max(self.peak, self.now)


def peak_bytes(step: Callable[[], None], device: str) -> int:
    """Peak of live bytes in the second of two steps, what the first left behind included."""
    if device == "cuda":
        step()
        torch.cuda.reset_peak_memory_stats()
        step()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()
    with LiveBytes() as live:
        step()
        live.peak = live.now
        step()
    return int(live.peak)


def worker(
    method: str, shape: Shape, device: str, frozen: tuple[str, ...], pipe: Connection
) -> None:
    """Answer every request on the pipe with the time of one step; the first with the memory."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    try:
        step, weights = stepper(method, shape, device, frozen)
        peak = peak_bytes(step, device)
        pipe.send({"peak": peak + (weights if device == "cpu" else 0), "weights": weights})
    except (RuntimeError, NotImplementedError, ValueError) as error:
        pipe.send({"failed": str(error)[:200]})
        return
    gc.collect()
    while pipe.recv():
        started = time.process_time() if device == "cpu" else time.perf_counter()
        step()
        if device == "cuda":
            torch.cuda.synchronize()
            pipe.send(time.perf_counter() - started)
        else:
            pipe.send(time.process_time() - started)


def measure(
    shape: Shape,
    methods: tuple[str, ...],
    device: str,
    repeats: int,
    frozen: tuple[str, ...],
) -> dict[str, dict[str, Any]]:
    """Seconds and bytes of every method; on a CPU they take turns, step by step."""
    if device != "cpu" and len(methods) > 1:
        # What is not running still holds its memory, of which a GPU has less.
        alone = [measure(shape, (method,), device, repeats, frozen) for method in methods]
        return {method: row for found in alone for method, row in found.items()}
    # Forked from a process that has the libraries loaded and no GPU context.
    context = multiprocessing.get_context("fork")
    found: dict[str, dict[str, Any]] = {}
    pipes: dict[str, Connection] = {}
    processes = []
    for method in methods:
        pipes[method], theirs = context.Pipe()
        process = context.Process(target=worker, args=(method, shape, device, frozen, theirs))
        process.start()
        processes.append(process)
        found[method] = pipes[method].recv()  # one at a time: memory is not shared out
        print(f"{shape} {method}: {found[method]}", file=sys.stderr, flush=True)
    times: dict[str, list[float]] = {method: [] for method in methods}
    running = [method for method in methods if "failed" not in found[method]]
    for _ in range(repeats):
        for method in running:
            pipes[method].send(True)
            times[method].append(pipes[method].recv())
    for method in running:
        pipes[method].send(False)
        found[method]["seconds"] = statistics.median(times[method])
        found[method]["fastest"] = min(times[method])
    for process in processes:
        process.join()
    return found


def ratio(found: dict[str, dict[str, Any]], over: str, under: str, what: str) -> float | None:
    if "failed" in found.get(over, {"failed": 1}) or "failed" in found.get(under, {"failed": 1}):
        return None
    return float(found[over][what] / found[under][what])


def typical(results: list[dict[str, Any]], over: str, under: str, what: str) -> float:
    """Geometric mean of a ratio over the shapes."""
    found = [ratio(row["methods"], over, under, what) for row in results]
    values = [value for value in found if value is not None]
    return math.exp(statistics.mean(map(math.log, values))) if values else math.nan


def ratios(results: list[dict[str, Any]], flat: list[dict[str, Any]]) -> dict[str, float]:
    # The second pair is what DP-BiTFiT could reach if privacy cost nothing.
    pairs = [("dp_bitfit", "bitfit"), ("dp_full_opacus", "bitfit")]
    pairs += [(m, "dp_bitfit") for m in METHODS if m not in ("bitfit", "dp_bitfit")]
    found = {
        f"{over}_{name}_over_{under}": typical(results, over, under, what)
        for over, under in pairs
        for name, what in (("time", "seconds"), ("memory", "peak"))
    }
    return {**found, **by_length(flat)}


def by_length(flat: list[dict[str, Any]]) -> dict[str, float]:
    """What the overhead over BiTFiT is at the longest records, over what it is at the shortest."""
    if not flat:
        return {}
    first, last = (flat[end]["methods"] for end in (0, -1))
    return {
        f"{name}_longest_over_shortest": (ratio(last, "dp_bitfit", "bitfit", what) or math.nan)
        / (ratio(first, "dp_bitfit", "bitfit", what) or math.nan)
        for name, what in (("overhead", "seconds"), ("memory_overhead", "peak"))
    }


def table(results: list[dict[str, Any]]) -> str:
    lines = [
        "| model | T | B | method | s/step | peak MB | time / BiTFiT | memory / BiTFiT |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in results:
        methods = row["methods"]
        for method, found in methods.items():
            start = f"| {row['model']} | {row['length']} | {row['batch']} | {method} |"
            if "failed" in found:
                lines.append(f"{start} failed: {found['failed']} | | | |")
                continue
            time_ratio = ratio(methods, method, "bitfit", "seconds") or math.nan
            memory_ratio = ratio(methods, method, "bitfit", "peak") or math.nan
            lines.append(
                f"{start} {found['seconds']:.3f} | {found['peak'] / 1e6:.0f} | "
                f"{time_ratio:.2f} | {memory_ratio:.2f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one shape, under a minute")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--models", nargs="*", help="only the shapes of these; default: all")
    parser.add_argument(
        "--freeze-embeddings", action="store_true", help="do not train them in the full methods"
    )
    options = parser.parse_args()
    if options.json:  # before the run, not after hours of it
        options.json.parent.mkdir(parents=True, exist_ok=True)
    frozen = (*BARE, *EMBEDDINGS) if options.freeze_embeddings else BARE
    shapes, flat_shapes = {
        ("cpu", True): (QUICK, FLAT_QUICK),
        ("cpu", False): (CPU, FLAT),
        ("cuda", True): (CUDA[:1], FLAT_CUDA[:2]),
        ("cuda", False): (CUDA, FLAT_CUDA),
    }[options.device, options.quick]
    if options.models:
        shapes = [shape for shape in shapes if shape.model in options.models]
        flat_shapes = [shape for shape in flat_shapes if shape.model in options.models]
    repeats = options.repeats or (3 if options.device == "cpu" else 20)
    results = [
        {**asdict(shape), "methods": measure(shape, METHODS, options.device, repeats, frozen)}
        for shape in shapes
    ]
    flat = [
        {
            **asdict(shape),
            "methods": measure(shape, ("bitfit", "dp_bitfit"), options.device, 3 * repeats, frozen),
        }
        for shape in flat_shapes
    ]
    figures: dict[str, Any] = {
        "ratios": ratios(results, flat),
        "results": results,
        "by_length": flat,
    }
    print(table(results))
    print("\nThe overhead by length, at a constant number of tokens:\n")
    print(table(flat))
    print()
    for name, value in figures["ratios"].items():
        print(f"{name}: {value:.3f}")
    if options.json:
        options.json.write_text(
            json.dumps({"device": options.device, **figures}, indent=1), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
