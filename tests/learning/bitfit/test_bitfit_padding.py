"""A record must be to the model what it is alone, however long the others of its batch are."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from learning.bitfit import Accountant, FineTuning, Phase, PrivacyError, TensorData, train
from learning.bitfit.data import tokenized

RECORDS = 40


def config(**changes: Any) -> FineTuning:
    given: dict[str, Any] = {
        "dataset_size": RECORDS,
        "expected_batch": RECORDS,
        "noise_multiplier": 1.0,
        "phases": (Phase(epochs=2, learning_rate=0.01),),
        "microbatch": 4,
        **changes,
    }
    return FineTuning(**given)


class MeanOfEverything(nn.Module):
    """Padding weighs in unless the mask is obeyed."""

    def __init__(self, masked: bool) -> None:
        super().__init__()
        self.masked = masked
        self.words, self.classifier = nn.Embedding(30, 4), nn.Linear(4, 2)
        nn.init.zeros_(self.classifier.weight)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        mask = (attention_mask if self.masked else torch.ones_like(attention_mask))[:, :, None]
        mean = (self.words(input_ids) * mask).sum(1) / mask.sum(1)
        return SimpleNamespace(logits=self.classifier(mean))


def test_records_whose_gradient_depends_on_the_length_of_others_are_refused() -> None:
    records = tokenized([[5, 6, 7, 8, 9][: 1 + i % 5] for i in range(RECORDS)], [0, 1] * 20)
    run = config()
    assert train(MeanOfEverything(True), records, run).status == "completed"
    with pytest.raises(PrivacyError, match="length of the other"):
        train(MeanOfEverything(False), records, run)
    of_one_length = tokenized([[5 + i % 9, 6] for i in range(RECORDS)], [0, 1] * 20)
    assert train(MeanOfEverything(False), of_one_length, run).status == "completed"


class InOrder:
    """Every record in every batch."""

    def uniform(self, size: int) -> NDArray[np.float64]:
        return np.zeros(size)


def test_long_records_first_hide_no_dependence_on_padding() -> None:
    """The microbatch with a short record has the shape of those before, which had none."""
    encodings = [[5, 6, 7, 8, 9]] * (RECORDS - 2) + [[5], [6, 7]]
    records = tokenized(encodings, [0, 1] * 20)
    run = config(microbatch=8)
    assert train(MeanOfEverything(True), records, run, randomness=InOrder()).status == "completed"
    with pytest.raises(PrivacyError, match="length of the other"):
        train(MeanOfEverything(False), records, run, randomness=InOrder())


@pytest.mark.parametrize("weight", [0.0, torch.nan])
def test_a_record_without_a_gradient_says_nothing_of_padding(weight: float) -> None:
    def weighted(model: nn.Module, batch: Any) -> Tensor:
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
        return torch.as_tensor(model(**inputs).logits[:, 0] * batch["weight"])

    ids = torch.tensor([[5, 0, 0], [6, 7, 0], [6, 7, 8]] * 10)
    weights = torch.tensor([weight, 1.0, 1.0] * 10)
    records = TensorData({"input_ids": ids, "attention_mask": (ids > 0).long(), "weight": weights})
    run = config(dataset_size=30, expected_batch=30)
    with pytest.raises(PrivacyError, match="length of the other"):
        train(MeanOfEverything(False), records, run, loss=weighted, randomness=InOrder())


def test_a_run_that_is_refused_takes_no_step() -> None:
    steps: list[int] = []
    records = tokenized([[5, 6, 7][: 1 + i % 3] for i in range(RECORDS)], [0, 1] * 20)
    account = Accountant()
    with pytest.raises(PrivacyError):
        train(
            MeanOfEverything(False),
            records,
            config(),
            account=account,
            on_step=steps.append,
            randomness=InOrder(),
        )
    assert (steps, account.steps) == ([], 0)
