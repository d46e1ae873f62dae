"""One private step: clipping, summing, noise, divisor, and batches that would break the guarantee."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from scipy.stats import kstest
from torch import Tensor, nn

from learning.bitfit import PrivacyError, PrivacySettings, make_private
from learning.bitfit.clipping import factors
from learning.bitfit.ghost import squared_norms
from learning.bitfit.losses import causal_lm_loss
from learning.bitfit.noise import SeededNoise, SystemNoise

WIDTH = 4


class Ones:
    """Noise of all ones, counting how often and how much is drawn."""

    def __init__(self) -> None:
        self.draws: list[int] = []

    def normal(self, size: int, device: torch.device) -> Tensor:
        self.draws.append(size)
        return torch.ones(size, device=device)


class Model(nn.Module):
    """Head first, then the body."""

    def __init__(self) -> None:
        super().__init__()
        self.classifier = nn.Linear(WIDTH, 2)
        self.body = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.classifier(torch.tanh(self.body(x))))


def loss(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    return torch.sin(model(batch["x"])).sum(1) * batch["scale"]


def batch_of(rows: int, scale: float = 1.0) -> dict[str, Tensor]:
    return {"x": torch.randn(rows, WIDTH), "scale": torch.full((rows,), scale)}


def released(private: Any) -> Tensor:
    """The flat gradient that one step hands to the optimiser."""
    optimizer = torch.optim.SGD(private.parameters, lr=1.0)
    before = torch.cat([p.detach().flatten() for p in private.parameters])
    private.step(optimizer)
    return before - torch.cat([p.detach().flatten() for p in private.parameters])


@pytest.mark.parametrize("clipping", ["abadi", "automatic", "normalised"])
def test_no_example_contributes_more_than_the_bound(clipping: Any) -> None:
    norms = torch.cat([torch.logspace(-30, 30, 200), torch.tensor([0.0, torch.inf, torch.nan])])
    scale = factors(norms, 0.7, clipping)
    assert torch.isfinite(scale[:-2]).all() and (scale >= 0).all()
    finite = torch.isfinite(norms)
    assert (norms[finite] * scale[finite] <= 0.7).all()
    assert (scale[~finite] == 0).all()
    kept = {"abadi": norms[50], "automatic": 0.0, "normalised": 0.7}[clipping]
    torch.testing.assert_close(norms[50] * scale[50], torch.as_tensor(kept), rtol=1e-4, atol=1e-10)


def test_clipped_sum_over_a_constant_divisor() -> None:
    """Neither the realised size nor the number of microbatches enters."""
    batch = batch_of(6, 100.0)
    results = []
    for pieces in ([6], [1, 2, 3], [3, 3]):
        torch.manual_seed(1)
        private = make_private(Model(), PrivacySettings(0.0, 8.0, 0.5, "abadi"))
        rows = iter(range(6))
        for size in pieces:
            chosen = [next(rows) for _ in range(size)]
            private.accumulate(loss, {k: v[chosen] for k, v in batch.items()})
        results.append(released(private))
        assert float(results[-1].norm()) <= 6 * 0.5 / 8
    torch.testing.assert_close(results[0], results[1])
    torch.testing.assert_close(results[0], results[2])
    torch.manual_seed(1)
    private = make_private(Model(), PrivacySettings(0.0, 8.0, 0.5, "abadi"))
    private.accumulate(loss, {k: v[:1] for k, v in batch.items()})
    torch.testing.assert_close(float(released(private).norm()), 0.5 / 8, rtol=1e-4, atol=0.0)


def test_noise_is_drawn_once_per_step_over_all_parameters() -> None:
    noise = Ones()
    private = make_private(Model(), PrivacySettings(3.0, 4.0, 0.5), noise=noise)
    width = sum(parameter.numel() for parameter in private.parameters)
    for _ in range(3):
        private.accumulate(loss, batch_of(2))
    clean = make_private(Model(), PrivacySettings(0.0, 4.0, 0.5), noise=Ones())
    released(private)
    assert noise.draws == [width] == [clean._width]


@pytest.mark.parametrize("method", ["bitfit", "full"])
def test_an_empty_batch_takes_a_noisy_step(method: Any) -> None:
    noise = Ones()
    private = make_private(Model(), PrivacySettings(3.0, 4.0, 0.5), noise=noise, method=method)
    private.accumulate(loss, batch_of(0))
    first, second = released(private), released(private)
    for step in (first, second):
        torch.testing.assert_close(step, torch.full_like(step, 3.0 * 0.5 / 4))
    assert len(noise.draws) == 2
    private.accumulate(loss, batch_of(3))  # and training goes on
    assert not torch.equal(released(private), first)


def test_nothing_of_one_step_reaches_the_next() -> None:
    private = make_private(Model(), PrivacySettings(0.0, 1.0))
    private.accumulate(loss, batch_of(3))
    assert float(released(private).norm()) > 0
    assert float(released(private).norm()) == 0


@pytest.mark.parametrize("method", ["bitfit", "full"])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_an_example_that_is_not_finite_counts_nothing(method: Any, bad: float) -> None:
    batch = batch_of(4)
    spoiled = {"x": batch["x"].clone(), "scale": batch["scale"].clone()}
    spoiled["scale"][2] = bad
    without = {k: v[[0, 1, 3]] for k, v in batch.items()}
    steps = []
    for given, warm_up in ((spoiled, batch), (without, batch)):
        torch.manual_seed(1)
        private = make_private(Model(), PrivacySettings(0.0, 4.0), method=method)
        private.accumulate(loss, warm_up)
        private._sum.zero_()
        private.accumulate(loss, given)
        skipped = private.skipped
        steps.append(released(private))
        assert skipped == (1 if given is spoiled else 0)
    torch.testing.assert_close(steps[0], steps[1])
    assert torch.isfinite(steps[0]).all()


def test_losses_that_couple_examples_are_refused() -> None:
    private = make_private(Model(), PrivacySettings(0.0, 1.0))
    batch = batch_of(4)

    def mean(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        return loss(model, batch).mean()

    def over_the_batch(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        return loss(model, batch) / len(batch["x"])

    def in_batch_negatives(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        out = model(batch["x"])
        return torch.log_softmax(out @ out.T, 1).diagonal()

    with pytest.raises(PrivacyError, match="one value per example"):
        private.accumulate(mean, batch)
    for coupled in (over_the_batch, in_batch_negatives):
        with pytest.raises(PrivacyError, match="other examples"):
            private.accumulate(coupled, batch)
    with pytest.raises(PrivacyError, match="num_items_in_batch"):
        private.accumulate(loss, {**batch, "num_items_in_batch": torch.tensor(4)})
    with pytest.raises(PrivacyError, match="first dimension"):
        private.accumulate(loss, {**batch, "position": torch.zeros(1)})
    assert float(released(private).norm()) == 0


def test_a_head_at_zero_hides_no_coupling() -> None:
    """The loss is the same whatever the features, and no gradient flows into them."""

    def centred(model: Any, batch: Mapping[str, Tensor]) -> Tensor:
        features = torch.tanh(model.body(batch["x"]))
        return torch.as_tensor(model.classifier(features - features.mean(0)).sum(1))

    model = Model()
    nn.init.zeros_(model.classifier.weight)
    private = make_private(model, PrivacySettings(0.0, 1.0))
    with pytest.raises(PrivacyError, match="other examples"):
        private.accumulate(centred, batch_of(4))


def test_an_example_without_a_gradient_hides_no_coupling() -> None:
    batch = batch_of(4)
    batch["scale"][3] = 0.0
    private = make_private(Model(), PrivacySettings(0.0, 1.0))
    with pytest.raises(PrivacyError, match="other examples"):
        private.accumulate(lambda m, b: loss(m, b) / len(b["x"]), batch)
    # With none at all there is nothing to compare, and nothing to refuse either.
    private.accumulate(loss, batch_of(2, 0.0))
    assert private._verified == 0


@pytest.mark.parametrize("method", ["bitfit", "full"])
@pytest.mark.parametrize("row", [0, 3])
def test_a_first_batch_with_an_example_that_is_not_finite(method: Any, row: int) -> None:
    batch = batch_of(4)
    batch["scale"][row] = torch.nan
    private = make_private(Model(), PrivacySettings(0.0, 1.0), method=method)
    private.accumulate(loss, batch)
    assert private.skipped == 1 and private._verified == 2
    assert torch.isfinite(released(private)).all()
    # Two that are not leave too little to compare: the next batch is looked at.
    private = make_private(Model(), PrivacySettings(0.0, 1.0), method=method)
    private.accumulate(loss, {name: value[[row, row, 1]] for name, value in batch.items()})
    with pytest.raises(PrivacyError, match="other examples"):
        private.accumulate(lambda m, b: loss(m, b) / len(b["x"]), batch_of(4))


def test_language_model_loss_averages_over_own_tokens() -> None:
    class Bigram(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out = nn.Linear(5, 5)

        def forward(self, input_ids: Tensor) -> Any:
            class Output:
                logits = self.out(nn.functional.one_hot(input_ids, 5).float())

            return Output

    ids = torch.randint(0, 5, (3, 6))
    labels = ids.clone()
    labels[1, 3:] = -100
    labels[2] = -100
    model = Bigram()
    losses = causal_lm_loss(model, {"input_ids": ids, "labels": labels})
    log = torch.log_softmax(model(ids).logits, 2)
    expected = -log[1, torch.arange(2), ids[1, 1:3]].mean()
    torch.testing.assert_close(losses[1], expected)
    assert losses.shape == (3,) and losses[2] == 0


def test_mixed_precision_keeps_sums_and_noise_in_fp32() -> None:
    torch.manual_seed(1)
    full = make_private(Model(), PrivacySettings(0.0, 4.0, 0.5))
    torch.manual_seed(1)
    mixed = make_private(Model(), PrivacySettings(0.0, 4.0, 0.5, autocast=torch.bfloat16))
    batch = batch_of(64)
    for private in (full, mixed):
        private.accumulate(loss, batch)
    assert mixed._sum.dtype == mixed._capture.gradients.dtype == torch.float32
    torch.testing.assert_close(released(mixed), released(full), rtol=0.05, atol=0.02)
    low = Model().to(torch.bfloat16)
    private = make_private(low, PrivacySettings(0.0, 4.0))
    private.accumulate(loss, {k: v.to(torch.bfloat16) for k, v in batch.items()})
    assert private._capture.gradients.dtype == torch.float32
    with pytest.raises(PrivacyError, match="fp32"):
        make_private(Model(), PrivacySettings(0.0, 4.0, autocast=torch.bfloat16), method="full")
    draw = SystemNoise().normal(100_000, torch.device("cpu"))
    assert draw.dtype == torch.float32 and len(draw.unique()) > 90_000


def test_noise_has_the_stated_deviation_and_never_repeats() -> None:
    private = make_private(Model(), PrivacySettings(2.0, 4.0, 0.5), noise=SeededNoise(1))
    steps = torch.stack([released(private) for _ in range(1500)])
    assert abs(float(steps.std()) / (2.0 * 0.5 / 4) - 1) < 0.01
    system = SystemNoise()
    assert not torch.equal(
        system.normal(8, torch.device("cpu")), system.normal(8, torch.device("cpu"))
    )
    draw = system.normal(400_000, torch.device("cpu")).double()
    assert abs(float(draw.mean())) < 0.01 and abs(float(draw.std()) - 1) < 0.006
    assert (
        abs(float((draw**4).mean()) - 3) < 0.08 and float((draw.abs() > 3).double().mean()) > 2e-3
    )
    # The rare outcomes of a goodness-of-fit test are rarer than a broken machine.
    assert kstest(draw.numpy(), "norm").pvalue > 1e-9
    turns = system.normal(2 * 2**16 + 3, torch.device("cpu"))
    assert len(turns.unique()) > 130_000 and not torch.equal(turns[: 2**16], turns[2**16 : 2**17])
    assert [len(system.normal(size, torch.device("cpu"))) for size in (0, 1, 3)] == [0, 1, 3]
    assert isinstance(make_private(Model(), PrivacySettings(1.0, 1.0))._noise, SystemNoise)


def test_frozen_weights_do_not_switch_clipping_off() -> None:
    """An engine that clips only where weights are trained would release the raw sum here."""
    model = Model()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.endswith("bias"))
    private = make_private(model, PrivacySettings(50.0, 1.0, 0.1), head=None, noise=SeededNoise(2))
    private.accumulate(loss, batch_of(8, 1000.0))
    step = released(private)
    assert float(step.norm()) < 1000
    assert float(step.std()) > 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"noise_multiplier": -1.0},
        {"noise_multiplier": float("nan")},
        {"expected_batch": 0.0},
        {"max_grad_norm": 0.0},
        {"clipping": "none"},
    ],
)
def test_settings_are_checked(wrong: Any) -> None:
    with pytest.raises(ValueError, match="must be"):
        PrivacySettings(**{"noise_multiplier": 1.0, "expected_batch": 1.0, **wrong})


@pytest.mark.parametrize("length", [4, 64])
def test_a_ghost_norm_is_never_smaller_than_the_gradient(length: int) -> None:
    """States nearly equal at all positions, output gradients that cancel: rounding is all there is."""
    layer = nn.Linear(32, 32)
    x = torch.randn(200, 1, 32) + 1e-4 * torch.randn(200, length, 32)
    grad = torch.randn(200, length, 32)
    grad -= grad.mean(1, keepdim=True)
    exact = torch.einsum("bti,bto->boi", x.double(), grad.double()).square().sum((1, 2))
    assert (sum(squared_norms(layer, [(x, grad)])) >= exact * (1 - 1e-6)).all()
    # Where nothing cancels it is hardly larger.
    x = torch.randn(20, length, 32)
    exact = torch.einsum("bti,bto->boi", x, grad[:20]).square().sum((1, 2))
    squares = sum(squared_norms(layer, [(x, grad[:20])]))
    torch.testing.assert_close(squares, exact, rtol=1e-3, atol=0.0)


def test_long_records_are_not_refused_for_the_rounding_of_their_norms() -> None:
    """Positions of independent directions: the longer, the more of a norm may be rounding."""
    private = make_private(Model(), PrivacySettings(0.0, 1.0), method="full")

    def signed(model: Any, batch: Mapping[str, Tensor]) -> Tensor:
        return torch.as_tensor((model(batch["x"]).sum(2) * batch["sign"]).mean(1))

    batch = {"x": torch.randn(2, 20_000, WIDTH), "sign": torch.randn(2, 20_000)}
    private.accumulate(signed, batch)
    assert private._verified == 2


def test_ghost_clipping_takes_its_products_in_full_precision() -> None:
    model, seen = Model(), []
    private = make_private(model, PrivacySettings(0.0, 4.0), method="full")
    for parameter in model.parameters():
        parameter.register_hook(
            lambda _: seen.append(
                (
                    torch.backends.cudnn.conv.fp32_precision,
                    torch.backends.cuda.matmul.fp32_precision,
                )
            )
        )
    before = torch.backends.cudnn.conv.fp32_precision
    private.accumulate(loss, batch_of(1))
    assert set(seen) == {("ieee", "ieee")}
    assert torch.backends.cudnn.conv.fp32_precision == before == "tf32"
