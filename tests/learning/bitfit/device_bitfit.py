"""Private fine-tuning away from the CPU: run by ``test_away_from_the_cpu``, in a process of its own."""

import copy
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from on_device import DEVICE, NAME, SIMULATED, exchanged
from torch import Tensor, nn
from transformers import BertConfig, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM

from learning.bitfit import (
    FineTuning,
    Phase,
    PrivacySettings,
    TensorData,
    apply_delta,
    causal_lm_loss,
    classification_loss,
    make_private,
    train,
)
from learning.bitfit.losses import Loss
from learning.bitfit.noise import SeededNoise, SystemNoise
from learning.bitfit.plain import PlainModel
from privacy.randomness import SeededRandomness

RECORDS = 24
SMALL: dict[str, Any] = {
    "vocab_size": 30,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 8,
}


def encoder() -> nn.Module:
    torch.manual_seed(3)
    return BertForSequenceClassification(BertConfig(**SMALL, hidden_dropout_prob=0.0))


def writer() -> nn.Module:
    torch.manual_seed(3)
    return LlamaForCausalLM(LlamaConfig(**SMALL, num_key_value_heads=1))


def data(task: Loss) -> TensorData:
    torch.manual_seed(4)
    ids = torch.randint(3, 30, (RECORDS, 6))
    mask = torch.ones_like(ids)
    mask[::3, 4:] = 0
    labels = (ids[:, 0] > 15).long()
    return TensorData(
        {
            "input_ids": ids,
            "attention_mask": mask,
            "position_ids": torch.arange(6).expand(RECORDS, 6),
            "labels": labels if task is classification_loss else ids.masked_fill(mask == 0, -100),
        }
    )


def config(**changes: Any) -> FineTuning:
    given: dict[str, Any] = {
        "dataset_size": RECORDS,
        "expected_batch": 8,
        "noise_multiplier": 0.5,
        "phases": (Phase(epochs=2, learning_rate=0.01),),
        "microbatch": 4,
        "checkpoint_every": 2,
        **changes,
    }
    return FineTuning(**given)


RUNS: dict[str, tuple[Any, Loss, dict[str, Any]]] = {
    "head, then biases": (
        encoder,
        classification_loss,
        {"phases": (Phase(method="last_layer", epochs=1), Phase(epochs=1)), "decay": True},
    ),
    "everything, then biases": (
        encoder,
        classification_loss,
        {"phases": (Phase(method="full", epochs=1), Phase(epochs=1)), "clipping": "abadi"},
    ),
    "added biases": (writer, causal_lm_loss, {"add_biases": True, "head": None}),
    "sgd": (encoder, classification_loss, {"optimizer": "sgd"}),
    "bf16": (encoder, classification_loss, {"autocast": "bf16"}),
    "without privacy": (encoder, classification_loss, {"private": False, "noise_multiplier": None}),
}


def stop_after(steps: int) -> Any:
    asked = iter(range(10**6))
    return lambda: next(asked) >= steps


@pytest.mark.parametrize("name", list(RUNS))
def test_a_run_is_that_of_the_cpu_saved_and_put_on(name: str, tmp_path: Path) -> None:
    build, loss, changes = RUNS[name]
    ends = {}
    for device in ("cpu", NAME):
        given: dict[str, Any] = {"loss": loss, "noise": SeededNoise(1)}
        given |= {"randomness": SeededRandomness(1), "checkpoint_dir": tmp_path / device}
        run = (build().to(device), data(loss), config(**changes))
        assert train(*run, **given, should_stop=stop_after(3)).status == "stopped"
        ends[device] = train(build().to(device), *run[1:], **given)
    ours, theirs = ends[NAME], ends["cpu"]
    assert {p.device for p in ours.model.parameters()} == {DEVICE}
    assert ours.account.history == theirs.account.history
    # A GPU sums in another order.
    tolerance = 2e-2 if name == "bf16" else 1e-5 if SIMULATED else 2e-3
    for key, value in theirs.values.items():
        torch.testing.assert_close(ours.values[key], value, rtol=tolerance, atol=tolerance)
    base = build().to(DEVICE)
    before = {key: value.clone() for key, value in base.state_dict().items()}
    applied = apply_delta(base, ours.save(tmp_path / "out"))
    for key, value in ours.model.state_dict().items():
        assert torch.equal(base.state_dict()[key], value), key
    applied.remove()
    assert all(torch.equal(value, before[key]) for key, value in base.state_dict().items())


@pytest.mark.parametrize("method", ["bitfit", "full"])
def test_a_step_of_every_architecture_is_that_of_the_cpu(architecture: Any, method: Any) -> None:
    steps = []
    for device in ("cpu", NAME):
        model = copy.deepcopy(architecture.model).to(device)
        batch = {name: value.to(device) for name, value in architecture.batch.items()}
        exclude = architecture.exclude if method == "full" else ()
        private = make_private(
            model,
            PrivacySettings(0.5, 5.0),
            method=method,
            head=architecture.head,
            exclude=exclude,
            noise=SeededNoise(2),
        )
        before = torch.cat([p.detach().flatten() for p in private.parameters])
        private.accumulate(architecture.loss, batch)
        private.accumulate(architecture.loss, {k: v[:0] for k, v in batch.items()})
        private.step(torch.optim.SGD(private.parameters, lr=1.0))
        after = torch.cat([p.detach().flatten() for p in private.parameters])
        steps.append((after - before).cpu())
    torch.testing.assert_close(steps[1], steps[0])


def test_mixed_precision_keeps_norms_sums_and_noise_in_fp32() -> None:
    class Watched(SystemNoise):
        def normal(self, size: int, device: torch.device) -> Tensor:
            drawn.append(super().normal(size, device))
            return drawn[-1]

    drawn: list[Tensor] = []
    seen: dict[str, set[Any]] = {"linear": set(), "norm": set(), "thread": set()}
    model = encoder().to(DEVICE)
    for module in model.modules():
        kind = {nn.Linear: "linear", nn.LayerNorm: "norm"}.get(type(module))
        if kind:
            module.register_forward_hook(lambda _m, _i, out, k=kind: seen[k].add(out.dtype))
    head = model.get_submodule("classifier")
    head.register_full_backward_pre_hook(lambda *_: seen["thread"].add(threading.get_ident()))
    private = make_private(
        model, PrivacySettings(1.0, 8.0, autocast=torch.bfloat16), noise=Watched()
    )
    batch = data(classification_loss).batch(torch.arange(8).numpy())
    private.accumulate(classification_loss, {k: v.to(DEVICE) for k, v in batch.items()})
    assert seen["linear"] == {torch.bfloat16} and seen["norm"] == {torch.float32}
    assert seen["thread"] and threading.get_ident() not in seen["thread"]
    norms = private._capture.norms()
    private.step(torch.optim.AdamW(private.parameters))
    for tensor in (norms, private._capture.gradients, private._sum, *drawn, *private.parameters):
        assert tensor.dtype == torch.float32 and tensor.device == DEVICE
    assert len(drawn) == 1 and not torch.equal(drawn[0], torch.zeros_like(drawn[0]))


def test_few_draws_are_made_by_the_host_and_many_by_the_device() -> None:
    drawn = [SystemNoise().normal(size, DEVICE) for size in (1000, 2**20 + 1)]
    for tensor in drawn:
        assert tensor.device == DEVICE and tensor.dtype == torch.float32
        assert abs(float(tensor.std()) - 1) < 0.2
    assert not torch.equal(drawn[1], SystemNoise().normal(2**20 + 1, DEVICE))


def test_an_empty_microbatch_without_privacy_stays_on_the_device() -> None:
    model = encoder().to(DEVICE)
    batch = data(classification_loss).batch(torch.arange(2).numpy())
    plain = PlainModel(model, 2.0)
    moved = {k: v.to(DEVICE) for k, v in batch.items()}
    losses = [plain.accumulate(classification_loss, part) for part in (moved, _none(moved))]
    assert torch.cat(losses).device == DEVICE


def _none(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value[:0] for name, value in batch.items()}


@pytest.mark.parametrize("private", [True, False])
def test_processes_exchange_what_lies_on_the_device(
    private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NCCL takes nothing else."""
    seen = exchanged(monkeypatch)
    noise = {"noise_multiplier": 0.5 if private else None}
    run = config(private=private, phases=(Phase(epochs=1),), **noise)
    train(encoder().to(DEVICE), data(classification_loss), run)
    assert len(seen) > 2 * run.total_steps and {tensor.device for tensor in seen} == {DEVICE}


def test_the_device_refuses_what_cuda_refuses() -> None:
    here, there = torch.ones(3, device=DEVICE), torch.ones(3)
    assert (here * 2 + torch.tensor(1.0)).device == DEVICE
    assert here[torch.tensor([0, 1])].shape == (2,)
    for wrong in (
        lambda: here + there,
        lambda: torch.cat([here, there]),
        lambda: there[here.long()],
        lambda: nn.Linear(3, 2)(here),
        lambda: nn.functional.cross_entropy(here[None], torch.tensor([0])),
        lambda: torch.randn(3, device=DEVICE, generator=torch.Generator()),
    ):
        with pytest.raises(RuntimeError, match="Expected|indices should be"):
            wrong()
    with pytest.raises(TypeError, match="numpy"):
        here.numpy()
    assert torch.tensor([1.5], device=NAME).tolist() == [1.5]
