"""Layers that are used otherwise than most: outputs changed in place, channels first, no bias below."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    ConvNextConfig,
    ConvNextForImageClassification,
    FalconConfig,
    FalconForCausalLM,
    ResNetConfig,
    ResNetForImageClassification,
    T5Config,
    T5ForConditionalGeneration,
)

from learning.bitfit import (
    PrivacyError,
    PrivacySettings,
    causal_lm_loss,
    classification_loss,
    make_private,
)
from learning.bitfit.losses import Batch

ROWS = 5
SETTINGS = PrivacySettings(0.0, 1.0, 1e9, "abadi")


def summed(model: nn.Module, batch: Batch) -> Tensor:
    out = model(batch["x"])
    return torch.as_tensor(torch.sin(out).flatten(1).sum(1))


def check(
    model: nn.Module,
    loss: Any,
    batch: dict[str, Tensor],
    brute: Any,
    *,
    rounding: float = 1e-9,
    **how: Any,
) -> None:
    """Per-example gradients and norms are those of a loop."""
    private = make_private(model, SETTINGS, **how)
    names = [item.name for item in private.trained]
    private.accumulate(loss, batch)
    ours, norms = private.per_example(loss, batch), private.per_example_norms(loss, batch)
    private.close()
    expected = brute(model, loss, batch, names)
    for name, value in ours.items():
        torch.testing.assert_close(value, expected[name], rtol=1e-6, atol=rounding)
    squares = torch.stack([value.flatten(1).square().sum(1) for value in expected.values()])
    torch.testing.assert_close(norms, squares.sum(0).sqrt(), rtol=1e-6, atol=0)


class InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        out = self.first(x)
        out += x
        out = self.second(torch.tanh(out))
        out *= 2
        return torch.as_tensor(out)


@pytest.mark.parametrize("method", ["bitfit", "full"])
@pytest.mark.parametrize("shape", [(4,), (3, 4)])
def test_outputs_that_are_changed_in_place(method: str, shape: Any, brute_force: Any) -> None:
    batch = {"x": torch.randn(ROWS, *shape, dtype=torch.float64)}
    check(InPlace().double(), summed, batch, brute_force, method=method, head=None)


def test_resnet_falcon_and_convnext(brute_force: Any) -> None:
    pixels = torch.randn(ROWS, 3, 32, 32, dtype=torch.float64)
    images = {"pixel_values": pixels, "labels": torch.arange(ROWS) % 2}
    size: Any = {"hidden_sizes": [8, 16], "depths": [1, 1], "num_labels": 2}
    resnet = ResNetForImageClassification(ResNetConfig(embedding_size=8, **size))
    check(resnet.double().eval(), classification_loss, images, brute_force)
    convnext = ConvNextForImageClassification(ConvNextConfig(num_stages=2, **size))
    check(convnext.double().eval(), classification_loss, images, brute_force)
    falcon = FalconForCausalLM(
        FalconConfig(
            vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, bias=True
        )
    )
    ids = torch.randint(0, 30, (ROWS, 6))
    texts = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids}
    check(falcon.double().eval(), causal_lm_loss, texts, brute_force, head=None)


def test_full_trains_norms_of_t5(brute_force: Any) -> None:
    config = T5Config(vocab_size=30, d_model=16, d_kv=8, d_ff=20, num_layers=1, num_heads=2)
    model = T5ForConditionalGeneration(config).double().eval()
    ids = torch.randint(1, 30, (ROWS, 6))
    batch = {"input_ids": ids, "decoder_input_ids": ids[:, :4]}

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        return torch.as_tensor(torch.sin(model(**batch).logits).sum((1, 2)))

    still = ("shared*", "*relative_attention_bias*")
    # T5's norms compute in fp32.
    check(model, loss, batch, brute_force, rounding=1e-5, method="full", head=None, exclude=still)


def test_full_reaches_a_weight_without_a_bias_below_everything_else(brute_force: Any) -> None:
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Tanh(), nn.Linear(4, 2)).double()
    batch = {"x": torch.randn(ROWS, 3, 4, dtype=torch.float64)}
    check(model, summed, batch, brute_force, method="full", head=None)


class Sometimes(nn.Module):
    """Layerdrop: a layer is left out of some batches, whatever is in them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.used = nn.Linear(4, 4), nn.Linear(4, 4), True

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.first(x))
        return torch.as_tensor(self.second(x) if self.used else x)


def test_a_layer_that_one_batch_leaves_out_counts_nothing_there(brute_force: Any) -> None:
    model = Sometimes().double()
    batch = {"x": torch.randn(ROWS, 4, dtype=torch.float64)}
    private = make_private(model, SETTINGS, head=None)
    private.accumulate(summed, batch)
    model.used = False
    private.accumulate(summed, batch)
    ours = private.per_example(summed, batch)
    private.step(torch.optim.SGD(private.parameters, lr=0.0))
    private.close()
    assert not ours["second.bias"].any()
    torch.testing.assert_close(
        ours["first.bias"], brute_force(model, summed, batch, ["first.bias"])["first.bias"]
    )
    private = make_private(model, SETTINGS, head=None)  # but one that was never seen is refused
    with pytest.raises(PrivacyError, match=r"second\.bias.*layerdrop"):
        private.accumulate(summed, batch)


class ChannelsFirst(nn.LayerNorm):
    """SqueezeBERT's kind: the class says last dimension, the call means the second."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class Pair(nn.Linear):
    def forward(self, x: Tensor) -> Any:
        return super().forward(x), x


def test_layers_that_are_not_what_their_class_says_are_named() -> None:
    private = make_private(nn.Sequential(ChannelsFirst(4)), SETTINGS, head=None)
    with pytest.raises(PrivacyError, match=r"0\.bias.*exclude"):
        private.accumulate(summed, {"x": torch.randn(ROWS, 4, 7)})

    def first(model: nn.Module, batch: Batch) -> Tensor:
        return torch.as_tensor(model(batch["x"])[0].sum(1))

    private = make_private(nn.Sequential(Pair(4, 4)), SETTINGS, method="full", head=None)
    with pytest.raises(PrivacyError, match=r"more than one tensor.*0\.weight.*exclude"):
        private.accumulate(first, {"x": torch.randn(ROWS, 4)})
    padded = nn.Sequential(nn.Conv2d(2, 2, 3, padding=1, padding_mode="circular"))
    with pytest.raises(PrivacyError, match=r"0\.weight \(Conv2d\)"):
        make_private(padded, SETTINGS, method="full", head=None)
