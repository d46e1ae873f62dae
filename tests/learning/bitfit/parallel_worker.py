"""One process of a torchrun job: train a tiny model three times, write what this process saw.

Usage: parallel_worker.py FOLDER
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from learning.bitfit import CheckpointError, FineTuning, Phase, TensorData, TrainResult, train

RECORDS, WIDTH = 24, 32


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(WIDTH, 8 * WIDTH)
        self.out = nn.Linear(8 * WIDTH, 2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.out(torch.tanh(self.body(x))))


class Ones:
    """Noise that shows how often it was added."""

    def normal(self, size: int, device: torch.device) -> Tensor:
        return torch.ones(size)


def loss(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    return torch.nn.functional.cross_entropy(model(batch["x"]), batch["y"], reduction="none")


def data() -> TensorData:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(RECORDS, WIDTH, generator=generator)
    return TensorData({"x": x, "y": (x[:, 0] > 0).long()})


def run(rate: float, folder: Path | None = None, shift: float = 0.0) -> TrainResult:
    """Four steps; ``shift`` moves the frozen weights of every rank but the first."""
    torch.manual_seed(0)
    model = Model()
    if dist.is_initialized() and dist.get_rank() > 0:
        model.out.bias.data.add_(1.0)  # as a new head would differ; rank 0's is the one
        model.body.weight.data.add_(shift)
    config = FineTuning(
        dataset_size=RECORDS,
        expected_batch=rate * RECORDS,
        noise_multiplier=0.5,
        optimizer="sgd",
        microbatch=5,
        head=None,
        phases=(Phase(method="bitfit", epochs=4 * rate, learning_rate=0.1),),
    )
    return train(model, data(), config, loss=loss, noise=Ones(), checkpoint_dir=folder)


def report(result: TrainResult) -> dict[str, Any]:
    return {
        "bytes": result.bytes_reduced,
        "values": {name: value.tolist() for name, value in result.values.items()},
        "steps": result.account.steps,
    }


def main() -> None:
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    seen: dict[str, Any] = {
        "certain": report(run(1.0)),
        "rare": report(run(0.02, folder / "checkpoints")),
    }
    try:
        run(1.0, shift=1.0)
    except CheckpointError as error:
        seen["different"] = str(error)
    (folder / f"{dist.get_rank()}.json").write_text(json.dumps(seen), encoding="utf-8")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
