"""Models that carry something of one example to another, and wrappers that hide what is trained."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

from learning.bitfit import (
    FineTuning,
    Phase,
    PrivacyError,
    PrivacySettings,
    TensorData,
    classification_loss,
    make_private,
    train,
)

ROWS, WIDTH = 6, 4
SETTINGS = PrivacySettings(0.0, 1.0, 1e6, "abadi")


class Classifier(nn.Module):
    """A body between a layer with a bias and the head."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.first, self.body, self.classifier = nn.Linear(WIDTH, WIDTH), body, nn.Linear(WIDTH, 2)

    def forward(self, x: Tensor) -> Any:
        return SimpleNamespace(logits=self.classifier(self.body(torch.tanh(self.first(x)))))


def batch(*shape: int) -> dict[str, Tensor]:
    return {"x": torch.randn(ROWS, *(shape or (WIDTH,))), "labels": torch.arange(ROWS) % 2}


class Backwards(nn.Module):
    """Every row sees those behind it; the last one sees only itself."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.3 * x.flip(0).cumsum(0).flip(0)


class Centred(nn.Module):
    """Statistics of the batch, in training only."""

    def __init__(self, differentiable: bool) -> None:
        super().__init__()
        self.differentiable = differentiable

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        mean = x.mean(0)
        return x - (mean if self.differentiable else mean.detach())


class Mixed(nn.Module):
    """Mixup of the hidden states, in training only; no two passes are alike."""

    def forward(self, x: Tensor) -> Tensor:
        return 0.6 * x + 0.4 * x[torch.randperm(len(x))] if self.training else x


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (Backwards(), "reaches the rows of other"),
        (Centred(True), "reaches the rows of other"),
        (Centred(False), "changes with the other examples"),
        (Mixed(), "reaches the rows of other"),
    ],
    ids=["backwards", "training only", "training only, no gradient", "random"],
)
def test_coupling_in_one_direction_or_in_training_only_is_refused(
    body: nn.Module, message: str
) -> None:
    private = make_private(Classifier(body).train(), SETTINGS)
    with pytest.raises(PrivacyError, match=message):
        private.accumulate(classification_loss, batch())


def test_dropout_is_no_coupling() -> None:
    private = make_private(Classifier(nn.Dropout(0.5)).train(), SETTINGS)
    private.accumulate(classification_loss, batch())


class Remembers(nn.Module):
    """A moving average of what it saw: written in place, or put there anew."""

    mean: Tensor

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.in_place = in_place
        self.register_buffer("mean", torch.zeros(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        out = x - self.mean
        now = x.detach().mean(0)
        if self.in_place:
            self.mean.mul_(0.9).add_(0.1 * now)
        else:
            self.mean = 0.9 * self.mean + 0.1 * now
        return out


class Looked(nn.Module):
    """An embedding whose rows are cut to a norm when they are looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, WIDTH, max_norm=0.5)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table(x.argmax(-1))


STATES: list[tuple[Callable[[], nn.Module], str]] = [
    (lambda: Remembers(True), r"body\.mean"),
    (lambda: Remembers(False), r"body\.mean"),
    (Looked, r"body\.table\.weight"),
    (lambda: parametrizations.spectral_norm(nn.Linear(WIDTH, WIDTH)), "_u changes"),
]


@pytest.mark.parametrize(("make", "message"), STATES)
def test_what_a_forward_pass_leaves_in_the_model_is_refused(
    make: Callable[[], nn.Module], message: str
) -> None:
    private = make_private(Classifier(make()).train(), SETTINGS)
    with pytest.raises(PrivacyError, match=message):
        private.accumulate(classification_loss, batch())


class Table(nn.Module):
    """Positions, made anew when a batch is longer than all before."""

    wave: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("wave", torch.zeros(1, 1))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.wave.shape[0]:
            self.wave = torch.arange(float(x.shape[1])).sin()[:, None]
        return (x + self.wave[: x.shape[1]]).mean(1)


def test_a_table_of_positions_may_grow() -> None:
    private = make_private(Classifier(Table()).train(), SETTINGS)
    for length in (3, 5, 4):
        private.accumulate(classification_loss, batch(length, WIDTH))


@pytest.mark.parametrize(
    "body",
    [
        nn.Sequential(
            nn.Unflatten(1, (2, 2)), nn.InstanceNorm1d(2, track_running_stats=True), nn.Flatten()
        ),
        nn.BatchNorm1d(WIDTH),
        parametrizations.spectral_norm(nn.Linear(WIDTH, WIDTH)),
    ],
    ids=["instance norm", "batch norm", "spectral norm"],
)
def test_the_trainer_freezes_what_layers_remember(body: nn.Module) -> None:
    model = Classifier(body)
    before = {name: value.clone() for name, value in model.named_buffers()}
    run = FineTuning(
        dataset_size=ROWS,
        expected_batch=ROWS,
        noise_multiplier=1.0,
        phases=(Phase(epochs=1),),
        exclude=("body.*",),
    )
    assert train(model, TensorData(batch()), run).status == "completed"
    for name, value in model.named_buffers():
        assert torch.equal(value, before[name]), name


def test_a_head_behind_a_wrapper_that_answers_for_the_model_is_trained() -> None:
    class Wrapper(nn.Module):
        def __init__(self, inner: nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(super().__getattr__("inner"), name)

        def forward(self, x: Tensor) -> Any:
            return self.inner(x)

    private = make_private(Wrapper(Classifier(nn.Tanh())), SETTINGS, method="last_layer")
    assert [item.name for item in private.trained] == [
        "inner.classifier.weight",
        "inner.classifier.bias",
    ]


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_wrappers_with_gradients_or_names_of_their_own_are_refused() -> None:
    model = Classifier(nn.Tanh())
    with pytest.raises(PrivacyError, match=r"model\.module"):
        make_private(nn.DataParallel(model), SETTINGS)
    with pytest.raises(PrivacyError, match=r"model\.compile\(\)"):
        make_private(torch.compile(model), SETTINGS)
    model.compile(backend="eager")
    with pytest.raises(PrivacyError, match="twice"):
        make_private(model, SETTINGS, method="full")


def test_no_head_is_told_as_such() -> None:
    with pytest.raises(PrivacyError, match=r"trains the head; pass head="):
        make_private(Classifier(nn.Tanh()), SETTINGS, method="last_layer", head=None)
    with pytest.raises(PrivacyError, match="no part named 'lm_head'"):
        make_private(Classifier(nn.Tanh()), SETTINGS, head="lm_head")


def test_a_parametrized_bias_is_not_dropped_silently() -> None:
    body = nn.Linear(WIDTH, WIDTH)
    parametrize.register_parametrization(body, "bias", nn.Tanh())
    with pytest.raises(PrivacyError, match=r"body\.parametrizations\.bias\.original"):
        make_private(Classifier(body), SETTINGS)
