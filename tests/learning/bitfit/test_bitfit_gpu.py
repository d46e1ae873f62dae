"""The same code on an accelerator, in bf16."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForSequenceClassification

from learning.bitfit import PrivacySettings, classification_loss, make_private
from learning.bitfit.noise import SystemNoise

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator"),
]


def model_and_batch() -> tuple[nn.Module, Mapping[str, Tensor]]:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=100,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    ids = torch.randint(3, 100, (16, 32))
    batch = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "labels": torch.arange(16) % 2,
    }
    return BertForSequenceClassification(config), batch


def test_gradients_on_the_accelerator_are_those_of_the_processor() -> None:
    results = {}
    for device in ("cpu", "cuda"):
        model, batch = model_and_batch()
        private = make_private(model.to(device), PrivacySettings(0.0, 16.0))
        moved = {name: value.to(device) for name, value in batch.items()}
        private.accumulate(classification_loss, moved)
        results[device] = private.per_example(classification_loss, moved)
    joined = [torch.cat([v.cpu().flatten() for v in r.values()]) for r in results.values()]
    assert float((joined[0] - joined[1]).norm() / joined[0].norm()) < 1e-4


def test_bf16_step_with_noise_on_the_accelerator() -> None:
    model, batch = model_and_batch()
    settings = PrivacySettings(1.0, 16.0, autocast=torch.bfloat16)
    private = make_private(model.to("cuda"), settings)
    optimizer = torch.optim.AdamW(private.parameters, lr=1e-3)
    private.accumulate(classification_loss, {k: v.to("cuda") for k, v in batch.items()})
    private.step(optimizer)
    private.step(optimizer)  # an empty batch
    assert all(bool(torch.isfinite(p).all()) for p in private.parameters)
    draw = SystemNoise().normal(1_000_000, torch.device("cuda"))
    assert draw.dtype == torch.float32 and abs(float(draw.std()) - 1) < 0.01
