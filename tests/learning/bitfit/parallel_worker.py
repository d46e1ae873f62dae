"""One process of a torchrun job: train a tiny model, write what this process saw.

Usage: parallel_worker.py FOLDER METHOD RATE
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

from learning.bitfit import FineTuning, Phase, TensorData, train
from learning.bitfit.trainer import TrainResult

RECORDS, WIDTH = 24, 32


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(WIDTH, 8 * WIDTH)
        self.out = nn.Linear(8 * WIDTH, 2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.out(torch.tanh(self.body(x))))


def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    return torch.nn.functional.cross_entropy(model(batch["x"]), batch["y"], reduction="none")


class Ones:
    def normal(self, size: int, device: torch.device) -> Tensor:
        return torch.ones(size)


def data() -> TensorData:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(RECORDS, WIDTH, generator=generator)
    return TensorData({"x": x, "y": (x[:, 0] > 0).long()})


def run(method: str, rate: float, folder: Path | None = None) -> TrainResult:
    torch.manual_seed(0)
    config = FineTuning(
        dataset_size=RECORDS,
        expected_batch=rate * RECORDS,
        noise_multiplier=0.5,
        optimizer="sgd",
        microbatch=5,
        head=None,
        phases=(
            Phase(
                method="bitfit",
                epochs=4 * rate,
                learning_rate=0.1,
            ),
        ),
    )
    model = Model()
    if dist.is_initialized() and dist.get_rank() > 0:
        model.out.bias.data.add_(1.0)  # as a new head would differ; rank 0's is the one
        if method == "different":
            model.body.weight.data.add_(1.0)
    return train(
        model,
        data(),
        config,
        loss=loss,  # type: ignore[arg-type]
        noise=Ones(),
        checkpoint_dir=folder,
    )


def main() -> None:
    folder, method, rate = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    result = run(method, rate, folder / "checkpoints")
    rank = dist.get_rank()
    report = {
        "bytes": result.bytes_reduced,
        "values": {name: value.tolist() for name, value in result.values.items()},
        "steps": result.account.steps,
    }
    (folder / f"{rank}.json").write_text(json.dumps(report), encoding="utf-8")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
