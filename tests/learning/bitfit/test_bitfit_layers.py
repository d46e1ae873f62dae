"""Layers and ways of using them: what works, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
)
from transformers.pytorch_utils import Conv1D

from learning.bitfit import PrivacyError, PrivacySettings, add_biases, make_private, remove_biases
from learning.bitfit.losses import Batch

ROWS = 4


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)
        self.bias = nn.Parameter(torch.randn(width))
        self.eps = 1e-6

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], self.weight, self.eps) + self.bias


class Wrapped(nn.Module):
    """A body and a loss that weighs every output differently."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.body(x)
        return out


def weighted(model: nn.Module, batch: Batch) -> Tensor:
    out = model(batch["x"]).flatten(1)
    return (torch.sin(out) * torch.arange(1, out.shape[1] + 1)).sum(1)


LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(4, 3), (4,)),
    "linear over positions": (lambda: nn.Linear(4, 3), (2, 5, 4)),
    "conv1d of GPT-2": (lambda: Conv1D(3, 4), (5, 4)),
    "layer norm": (lambda: nn.LayerNorm(4), (5, 4)),
    "layer norm over two": (lambda: nn.LayerNorm((5, 4)), (3, 5, 4)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (4, 3, 3)),
    "rms norm with bias": (lambda: RMSNorm(4), (5, 4)),
    "conv1d": (lambda: nn.Conv1d(2, 4, 3, groups=2), (2, 6)),
    "conv2d": (lambda: nn.Conv2d(2, 3, 3, stride=2, padding=1), (2, 6, 5)),
    "conv3d": (lambda: nn.Conv3d(2, 3, 2), (2, 3, 4, 3)),
    "transposed conv2d": (lambda: nn.ConvTranspose2d(2, 3, 2), (2, 3, 3)),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("method", ["bitfit", "full"])
def test_every_layer(name: str, method: Any, brute_force: Any) -> None:
    make, shape = LAYERS[name]
    model = Wrapped(make()).double()
    batch = {"x": torch.randn(ROWS, *shape, dtype=torch.float64)}
    exclude = ("*.weight",) if "conv" in name and name not in ("conv2d", "conv1d of GPT-2") else ()
    names = [n for n, _ in model.named_parameters() if method == "full" or n.endswith("bias")]
    names = [n for n in names if not (exclude and n.endswith("weight"))]
    expected = brute_force(model, weighted, batch, names)
    norms = torch.stack([g.flatten(1).square().sum(1) for g in expected.values()]).sum(0).sqrt()
    private = make_private(
        model, PrivacySettings(0.0, 1.0), method=method, head=None, exclude=exclude
    )
    assert [item.name for item in private.trained] == names
    private.accumulate(weighted, batch)  # with the independence check
    for key, ours in private.per_example(weighted, batch).items():
        torch.testing.assert_close(ours, expected[key], rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(private.per_example_norms(weighted, batch), norms)


class Twice(nn.Module):
    """A layer called twice, and a bias that two layers share; the head is defined first."""

    def __init__(self) -> None:
        super().__init__()
        self.classifier = nn.Linear(4, 2)
        self.shared = nn.Linear(4, 4)
        self.other = nn.Linear(4, 4)
        self.other.bias = self.shared.bias

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.shared(x))
        h = torch.tanh(self.shared(h) + self.other(h))
        return torch.as_tensor(self.classifier(h.mean(1)))


@pytest.mark.parametrize("method", ["bitfit", "full"])
def test_shared_tied_and_head_first(method: Any, brute_force: Any) -> None:
    model = Twice().double()
    batch = {"x": torch.randn(ROWS, 3, 4, dtype=torch.float64)}
    private = make_private(model, PrivacySettings(0.0, 1.0), method=method)
    names = [item.name for item in private.trained]
    assert {"classifier.bias", "classifier.weight", "shared.bias"} <= set(names)
    private.accumulate(weighted, batch)
    ours, norms = (
        private.per_example(weighted, batch),
        private.per_example_norms(weighted, batch),
    )
    private.close()
    expected = brute_force(model, weighted, batch, names)
    for key, value in ours.items():
        torch.testing.assert_close(value, expected[key])
    total = torch.stack([g.flatten(1).square().sum(1) for g in expected.values()]).sum(0).sqrt()
    torch.testing.assert_close(norms, total)


def two_layers() -> tuple[nn.Module, Batch]:
    config = BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=8,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    positions = torch.arange(5).expand(ROWS, 5)
    batch = {"x": torch.randint(0, 20, (ROWS, 5)), "positions": positions}
    return BertForSequenceClassification(config).double(), batch


def of_logits(model: nn.Module, batch: Batch) -> Tensor:
    ids, positions = batch["x"], batch["positions"]
    mask = torch.ones_like(ids)
    return torch.sin(model(input_ids=ids, position_ids=positions, attention_mask=mask).logits).sum(
        1
    )


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradient_checkpointing(reentrant: bool, brute_force: Any) -> None:
    model, batch = two_layers()
    names = [n for n, _ in model.named_parameters() if n.endswith("bias")]
    expected = brute_force(model, of_logits, batch, names)
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    model.train()
    private = make_private(model, PrivacySettings(0.0, 1.0))
    private.accumulate(of_logits, batch)
    ours = private.per_example(of_logits, batch)
    for name in names:
        torch.testing.assert_close(ours[name], expected[name], rtol=1e-7, atol=1e-10)


def test_ghost_clipping_with_gradient_checkpointing(brute_force: Any) -> None:
    model, batch = two_layers()
    names = [n for n, _ in model.named_parameters()]
    expected = brute_force(model, of_logits, batch, names)
    flat = torch.cat([g.flatten(1) for g in expected.values()], 1)
    model.train()
    model.gradient_checkpointing_enable({"use_reentrant": False})
    bound = float(flat.norm(dim=1).median())
    private = make_private(model, PrivacySettings(0.0, 1.0, bound, "abadi"), method="full")
    for _ in range(2):
        private.accumulate(of_logits, batch)
        clipped = flat * (bound / flat.norm(dim=1)).clamp(max=1)[:, None]
        torch.testing.assert_close(private._sum, clipped.sum(0), rtol=1e-5, atol=1e-7)
        private._sum.zero_()
    model.gradient_checkpointing_enable({"use_reentrant": True})
    with pytest.raises(PrivacyError, match="use_reentrant.: False"):
        private.accumulate(of_logits, batch)


def test_checkpointing_that_cuts_the_graph_is_refused() -> None:
    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.classifier = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                h = checkpoint(self.inner, x, use_reentrant=False)
            return torch.as_tensor(self.classifier(h))

    private = make_private(Cut(), PrivacySettings(0.0, 1.0))
    with pytest.raises(PrivacyError, match=r"inner\.bias"):
        private.accumulate(weighted, {"x": torch.randn(ROWS, 4)})


def test_tied_decoder_of_a_masked_model_is_counted_once(brute_force: Any) -> None:
    config = BertConfig(
        vocab_size=11,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
    )
    model = BertForMaskedLM(config).double().eval()
    batch = {"x": torch.randint(0, 11, (ROWS, 5))}

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        return torch.sin(model(input_ids=batch["x"]).logits).sum((1, 2))

    private = make_private(model, PrivacySettings(0.0, 1.0), head=None)
    private.accumulate(loss, batch)
    ours = private.per_example(loss, batch)
    private.close()
    names = [item.name for item in private.trained]
    assert sum("predictions" in name and name.endswith("bias") for name in names) == 3
    expected = brute_force(model, loss, batch, names)
    for name in names:
        torch.testing.assert_close(ours[name], expected[name])


def test_tied_embedding_is_refused_for_full_training() -> None:
    config = GPT2Config(vocab_size=11, n_embd=8, n_layer=1, n_head=2)
    with pytest.raises(PrivacyError, match=r"transformer\.wte\.weight"):
        make_private(GPT2LMHeadModel(config), PrivacySettings(0.0, 1.0), method="full", head=None)


@pytest.mark.parametrize(
    ("layer", "parameter"),
    [
        (nn.MultiheadAttention(4, 2), "in_proj_bias"),
        (nn.MultiheadAttention(4, 2), r"out_proj\.bias"),
        (nn.TransformerEncoderLayer(4, 2), "in_proj_bias"),
        (nn.LSTM(4, 4), "bias_ih_l0"),
        (nn.GRUCell(4, 4), "bias_hh"),
        (nn.Bilinear(4, 4, 4), "bias"),
    ],
)
def test_layers_without_a_hook_are_refused(layer: nn.Module, parameter: str) -> None:
    model = nn.Sequential(nn.Linear(4, 4), layer)
    with pytest.raises(PrivacyError, match=parameter):
        make_private(model, PrivacySettings(0.0, 1.0), head=None)
    private = make_private(model, PrivacySettings(0.0, 1.0), head=None, exclude=["1.*"])
    assert [item.name for item in private.trained] == ["0.bias"]


def test_batch_norm_is_refused_in_training_mode_and_works_frozen(brute_force: Any) -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.ReLU(inplace=True)).double()
    batch = {"x": torch.randn(ROWS, 2, 3, 3, dtype=torch.float64)}
    private = make_private(model, PrivacySettings(0.0, 1.0), head=None)
    with pytest.raises(PrivacyError, match="BatchNorm"):
        private.accumulate(weighted, batch)
    model.eval()
    private.accumulate(weighted, batch)
    ours = private.per_example(weighted, batch)
    private.close()
    expected = brute_force(model, weighted, batch, ["0.bias", "1.bias"])
    for name, value in expected.items():
        torch.testing.assert_close(ours[name], value)


def test_broadcast_input_is_refused() -> None:
    class Broadcast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.position, self.classifier = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            return torch.as_tensor(self.classifier(x + self.position(torch.ones(1, 4))))

    private = make_private(Broadcast(), PrivacySettings(0.0, 1.0))
    with pytest.raises(PrivacyError, match=r"position\.bias.*broadcast"):
        private.accumulate(weighted, {"x": torch.randn(ROWS, 4)})


def test_batch_in_the_second_dimension_is_refused_even_when_sizes_agree() -> None:
    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return torch.as_tensor(self.inner(x.transpose(0, 1)).transpose(0, 1))

    for length, message in ((3, "broadcast or flattened"), (ROWS, "first dimension everywhere")):
        private = make_private(Turned(), PrivacySettings(0.0, 1.0), head=None)
        with pytest.raises(PrivacyError, match=message):
            private.accumulate(weighted, {"x": torch.randn(ROWS, length, 4)})


class Functional(nn.Module):
    """Uses a parameter of its layer once more, outside of it, while it does not hide that."""

    def __init__(self, name: str, hidden: bool = False) -> None:
        super().__init__()
        self.inner, self.name, self.hidden = nn.Linear(4, 4), name, hidden

    def forward(self, x: Tensor) -> Tensor:
        out = torch.as_tensor(self.inner(x))
        if self.hidden:
            return out
        return out * torch.sigmoid(self.inner.get_parameter(self.name).sum())


@pytest.mark.parametrize("rows", [1, ROWS])
@pytest.mark.parametrize(("name", "method"), [("bias", "bitfit"), ("weight", "full")])
def test_a_parameter_used_outside_its_layer_is_refused(name: str, method: Any, rows: int) -> None:
    private = make_private(Functional(name), PrivacySettings(0.0, 1.0), method=method, head=None)
    with pytest.raises(PrivacyError, match="outside its layer"):
        private.accumulate(weighted, {"x": torch.randn(rows, 4)})
    if method == "bitfit":
        # What the first batch does not show the sums give away.
        model = Functional(name, True)
        private = make_private(model, PrivacySettings(0.0, 1.0), head=None)
        private.accumulate(weighted, {"x": torch.randn(rows, 4)})
        model.hidden = False
        private.accumulate(weighted, {"x": torch.randn(rows, 4)})
        with pytest.raises(PrivacyError, match="do not add up"):
            private.step(torch.optim.SGD(private.parameters, lr=1.0))


def test_unused_parameter_is_refused_by_name() -> None:
    model = nn.ModuleDict({"used": nn.Linear(4, 4), "unused": nn.Linear(4, 4)})

    def loss(model: Any, batch: Batch) -> Tensor:
        return torch.as_tensor(model["used"](batch["x"]).sum(1))

    private = make_private(model, PrivacySettings(0.0, 1.0), head=None)
    with pytest.raises(PrivacyError, match=r"unused\.bias"):
        private.accumulate(loss, {"x": torch.randn(ROWS, 4)})


def test_added_biases_change_nothing_at_first_and_go_without_a_trace() -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=8,
    )
    model = LlamaForCausalLM(config).eval()
    ids = torch.randint(0, 20, (2, 5))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    kinds = [type(module) for module in model.modules()]
    before = model(ids).logits
    with pytest.raises(PrivacyError, match="add_biases"):
        make_private(model, PrivacySettings(0.0, 1.0), head=None)
    names = add_biases(model)
    assert "model.layers.0.self_attn.q_proj" in names and "model.norm" in names
    assert torch.equal(model(ids).logits, before)
    with torch.no_grad():
        model.get_parameter("model.norm.added_bias").add_(1.0)
    assert not torch.equal(model(ids).logits, before)
    assert remove_biases(model) == names
    assert [type(module) for module in model.modules()] == kinds
    assert torch.equal(model(ids).logits, before)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_no_forward_hook_and_no_stored_input_for_biases() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 4))
    private = make_private(model, PrivacySettings(0.0, 1.0), head=None)
    assert not any(module._forward_hooks for module in model.modules())
    assert all(len(module._backward_pre_hooks) == 1 for module in model)
    saved: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        saved.append(tensor.data_ptr())
        return tensor

    x = torch.randn(ROWS, 4)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(x)
    assert x.data_ptr() not in saved
    private.close()
    assert not any(module._backward_pre_hooks for module in model)
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_head_is_found_or_named() -> None:
    model = nn.ModuleDict({"a": nn.Linear(2, 2), "answer": nn.Linear(2, 2)})
    with pytest.raises(PrivacyError, match="head="):
        make_private(model, PrivacySettings(0.0, 1.0))
    private = make_private(model, PrivacySettings(0.0, 1.0), head="answer", method="last_layer")
    assert [item.name for item in private.trained] == ["answer.weight", "answer.bias"]
    assert not model["a"].bias.requires_grad
