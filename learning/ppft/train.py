"""Both training stages: the same loop over rows and answers, resumable, data-parallel on request.

Stage 1 sees clean rows of public data, stage 2 the noised rows of a customer's export.  The first steps
move the projection alone.  Under torchrun every process takes its share of each batch and gradients
are averaged over gloo (or nccl on a GPU).
"""

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from learning.ppft.model import Example, PpftModel
from privacy.ppft.tasks import Task

Event = dict[str, Any]
Report = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a stage is trained.

    Attributes:
        steps: Optimiser steps.
        batch: Examples a step, all processes together.
        warm: Steps in which only the projection moves.
        lr, lr_projection: Peak learning rates of LoRA and of the projection.
        seed: Order of the examples.
        every: Steps between checkpoints.
        minutes: Stop earlier when this much time has passed; the schedule follows the clock then.
    """

    steps: int = 300
    batch: int = 16
    warm: int = 20
    lr: float = 1e-3
    lr_projection: float = 1e-3
    seed: int = 0
    every: int = 50
    minutes: float = math.inf


def train(
    model: PpftModel,
    examples: Sequence[Example],
    plan: Plan,
    checkpoint: Path | None = None,
    report: Report = print,
    should_stop: Callable[[], bool] = lambda: False,
) -> int:
    """Train in place; continues from ``checkpoint`` when it exists.

    Args:
        model: With LoRA; its trainable parameters change.
        examples: Rows and answers.
        plan: Steps, rates, order.
        checkpoint: File replaced atomically every ``plan.every`` steps.
        report: Receives events: ``resumed``, ``damaged`` (a checkpoint that cannot be read: training
            begins anew), ``step`` (every tenth), ``checkpoint``, ``done``.
        should_stop: Asked before every step; True on any process saves a checkpoint and returns.

    Returns:
        Steps done, those of earlier runs included.
    """
    rank, world = _processes(model)
    optimiser = _optimiser(model, plan)
    start = _resume(model, optimiser, checkpoint, report)
    began, losses, step = time.monotonic(), [], start
    model.network.train()
    for step, chosen in enumerate(schedule([e.task for e in examples], plan), start=1):
        if step <= start:
            continue
        share, stop = _agreed(model, _progress(step, start, plan, began), should_stop())
        if stop:
            step -= 1
            if checkpoint is not None and rank == 0:
                _save(model, optimiser, step, checkpoint)
                report({"event": "checkpoint", "step": step})
            break
        mine = [examples[i] for i in chosen[rank::world].tolist()]
        losses.append(_step(model, optimiser, mine, plan, step, share))
        late = share >= 1.0 and step < plan.steps
        if step % 10 == 0 or late:
            report({"event": "step", "step": step, "loss": float(np.mean(losses[-10:]))})
        if checkpoint is not None and rank == 0 and (step % plan.every == 0 or late):
            _save(model, optimiser, step, checkpoint)
            report({"event": "checkpoint", "step": step})
        if late:
            break
    model.network.eval()
    seconds = round(time.monotonic() - began, 1)
    report({"event": "done", "step": step, "seconds": seconds})
    return step


def schedule(of: Sequence[Task], plan: Plan) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of each step; a function of the examples' tasks and the seed: it resumes.

    A batch holds one task, so that little is padded; tasks take turns by the root of their sizes.
    """
    generator = np.random.Generator(np.random.PCG64(plan.seed))
    tasks = np.array([int(task) for task in of])
    pools = [np.flatnonzero(tasks == task) for task in np.unique(tasks)]
    weights = np.sqrt([len(pool) for pool in pools])
    queues: list[list[int]] = [[] for _ in pools]
    for _ in range(plan.steps):
        turn = int(generator.choice(len(pools), p=weights / weights.sum()))
        size = min(plan.batch, len(pools[turn]))
        while len(queues[turn]) < size:
            queues[turn].extend(generator.permutation(pools[turn]).tolist())
        chosen, queues[turn] = queues[turn][:size], queues[turn][size:]
        yield np.array(chosen)


def _step(
    model: PpftModel, optimiser: Any, examples: list[Example], plan: Plan, step: int, share: float
) -> float:
    loss = model.loss(examples) if examples else model.projection.weight.sum() * 0.0
    optimiser.zero_grad(set_to_none=False)
    loss.backward()  # type: ignore[no-untyped-call]
    parameters = list(model.trainable().values())
    _average(parameters)
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    rise = min(1.0, step / max(1, plan.warm))
    fall = 0.05 + 0.95 * 0.5 * (1.0 + math.cos(math.pi * min(share, 1.0)))
    for group in optimiser.param_groups:
        moving = group["projection"] or step > plan.warm
        group["lr"] = group["peak"] * rise * fall if moving else 0.0
    optimiser.step()
    return float(loss.detach())


def _progress(step: int, start: int, plan: Plan, began: float) -> float:
    """Share of the stage done, by steps or by the clock, whichever is further."""
    elapsed = (time.monotonic() - began) / (60.0 * plan.minutes)
    by_clock = start / plan.steps + (1 - start / plan.steps) * elapsed
    return max(step / plan.steps, by_clock)


def _agreed(model: PpftModel, share: float, stop: bool) -> tuple[float, bool]:
    """Return one decision for all processes: they stop at the same step, as soon as one has to."""
    if not torch.distributed.is_initialized():
        return share, stop
    both = torch.tensor([share, float(stop)], device=model.device)
    torch.distributed.all_reduce(both, torch.distributed.ReduceOp.MAX)
    return float(both[0]), bool(both[1])


def _optimiser(model: PpftModel, plan: Plan) -> torch.optim.AdamW:
    named = model.trainable()
    groups = [
        {
            "params": [p for n, p in named.items() if n.startswith("projection") == projection],
            "peak": plan.lr_projection if projection else plan.lr,
            "projection": projection,
        }
        for projection in (True, False)
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=0.0, weight_decay=0.0)


def _save(model: PpftModel, optimiser: Any, step: int, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {
        "step": step,
        "model": {name: p.detach() for name, p in model.trainable().items()},
        "optimiser": optimiser.state_dict(),
    }
    scratch = path.with_name(path.name + ".part")
    with open(scratch, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(scratch, path)


def _resume(model: PpftModel, optimiser: Any, path: Path | None, report: Report) -> int:
    from learning.ppft.artefact import restore

    if path is None or not path.exists():
        return 0
    try:
        # The optimiser counts its steps on the CPU: on a GPU every one of them would be waited for.
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # cut off; torch has no one type for that
        report({"event": "damaged", "step": 0})
        return 0
    restore(model, state["model"])
    optimiser.load_state_dict(state["optimiser"])
    report({"event": "resumed", "step": state["step"]})
    return int(state["step"])


def _processes(model: PpftModel) -> tuple[int, int]:
    """Join the process group that torchrun announces, unless done before; alone otherwise."""
    if not torch.distributed.is_initialized():
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return 0, 1
        torch.distributed.init_process_group("nccl" if model.device.type == "cuda" else "gloo")
    for parameter in model.trainable().values():
        torch.distributed.broadcast(parameter.data, 0)
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def _average(parameters: list[torch.nn.Parameter]) -> None:
    if not torch.distributed.is_initialized():
        return
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        torch.distributed.all_reduce(parameter.grad)
        parameter.grad /= torch.distributed.get_world_size()


def write_events(path: Path, then: Report | None = None) -> Report:
    """Return a reporter that appends events to a JSON-lines file."""
    path.parent.mkdir(parents=True, exist_ok=True)

    def report(event: Event) -> None:
        with open(path, "a", encoding="utf-8") as handle:
            handle.write(json.dumps({"at": round(time.time(), 1), **event}) + "\n")
        if then is not None:
            then(event)

    return report
