"""Whole runs: phases under one account, stop and resume, results put on and off, the worker."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

from learning.bitfit import (
    Accountant,
    CheckpointError,
    Event,
    FineTuning,
    Phase,
    TensorData,
    apply_delta,
    read_card,
    train,
)
from learning.bitfit.checkpoint import FILE
from learning.bitfit.data import tokenized
from learning.bitfit.job import Job, read_records, run_job
from privacy.randomness import SeededRandomness

RECORDS = 40


class Recorded:
    """Seeded noise that remembers what it gave."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self.given: list[Tensor] = []

    def normal(self, size: int, device: torch.device) -> Tensor:
        self.given.append(torch.randn(size, generator=self._generator))
        return self.given[-1]


def model() -> nn.Module:
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=30,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertForSequenceClassification(config)


def data() -> TensorData:
    torch.manual_seed(4)
    ids = torch.randint(3, 30, (RECORDS, 6))
    return TensorData(
        {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "position_ids": torch.arange(6).expand(RECORDS, 6),
            "labels": (ids[:, 0] > 15).long(),
        }
    )


def config(**changes: Any) -> FineTuning:
    given: dict[str, Any] = {
        "dataset_size": RECORDS,
        "expected_batch": 10,
        "noise_multiplier": 1.0,
        "phases": (Phase(epochs=2, learning_rate=0.01),),
        "microbatch": 4,
        "checkpoint_every": 3,
        **changes,
    }
    return FineTuning(**given)


X_BITFIT = (
    Phase(method="full", epochs=1, learning_rate=1e-3),
    Phase(method="bitfit", epochs=1, learning_rate=1e-2),
)


def test_two_phases_share_one_account() -> None:
    events: list[Event] = []
    base = {name: value.clone() for name, value in model().state_dict().items()}
    result = train(
        model(),
        data(),
        config(noise_multiplier=None, epsilon=6.0, delta=1e-3, phases=X_BITFIT),
        on_event=events.append,
    )
    assert [(e.label, e.steps) for e in result.account.history] == [("full", 4), ("bitfit", 4)]
    assert 5.9 < result.account.epsilon(1e-3) <= 6.0
    assert result.account.epsilon(1e-3, "replace_one") > 6.0
    assert [e.phase for e in events if e.kind == "phase"] == ["full", "bitfit"]
    spent = [e.epsilon for e in events if e.kind == "step" and e.epsilon is not None]
    assert spent == sorted(spent) and len(spent) == 8
    assert events[-1].kind == "done" and events[-1].eta_seconds == 0
    assert all(event.non_private_loss is None for event in events)
    name = "bert.encoder.layer.0.output.dense.weight"
    assert not torch.equal(result.values[name], base[name])
    assert all(parameter.requires_grad for parameter in result.model.parameters())
    assert not any(m._backward_pre_hooks or m._forward_hooks for m in result.model.modules())


def test_what_is_drawn_is_what_is_charged() -> None:
    """Records without a gradient and noise of all ones show the scale; the records asked for, q."""

    class Asked(TensorData):
        def batch(self, indices: NDArray[np.int64]) -> dict[str, Tensor]:
            asked.append(len(indices))
            return super().batch(indices)

    class Ones:
        def normal(self, size: int, device: torch.device) -> Tensor:
            return torch.ones(size)

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return torch.as_tensor(0.0 * model(batch["x"]).sum(1))

    asked: list[int] = []
    ends: list[int] = []
    body = nn.Linear(2, 2)
    nn.init.zeros_(body.bias)
    result = train(
        body,
        Asked({"x": torch.ones(RECORDS, 2)}),
        config(
            noise_multiplier=4.0,
            max_grad_norm=0.5,
            optimizer="sgd",
            head=None,
            microbatch=RECORDS,
            phases=(Phase(epochs=50), Phase(epochs=50, expected_batch=4, learning_rate=0.01)),
        ),
        loss=loss,
        noise=Ones(),
        randomness=SeededRandomness(1),
        on_step=lambda step: ends.append(len(asked)) if step in (0, 200) else None,
    )
    charged = result.account.history
    assert [entry.steps for entry in charged] == [200, 500]
    moved = sum(
        e.steps * rate * e.noise_multiplier * 0.5 / (e.rate * RECORDS)
        for e, rate in zip(charged, (5e-3, 0.01), strict=True)
    )
    assert -result.values["bias"][0].item() == pytest.approx(moved, rel=1e-4)
    for entry, start, end in zip(charged, ends, (ends[1], None), strict=True):
        records = sum(asked[start:end])
        assert records == pytest.approx(entry.rate * entry.steps * RECORDS, rel=0.05)


def test_biases_only_leave_the_rest_bit_equal() -> None:
    base = {name: value.clone() for name, value in model().state_dict().items()}
    result = train(model(), data(), config())
    for name, value in result.model.state_dict().items():
        trained = name.endswith("bias") or name.startswith("classifier")
        assert trained or torch.equal(value, base[name]), name
        assert trained == (name in result.values)


def test_a_rerun_adds_to_the_account_and_a_spent_budget_stops_it() -> None:
    account = Accountant()
    first = train(model(), data(), config(), account=account).card["epsilon"]
    second = train(model(), data(), config(), account=account).card
    assert account.steps == 16
    assert second["epsilon"] > first
    with pytest.raises(ValueError, match="spent already"):
        train(model(), data(), config(noise_multiplier=None, epsilon=first), account=account)


def test_training_learns() -> None:
    events: list[Event] = []
    changes = {"private": False, "noise_multiplier": None, "report_loss": True}
    phases = (Phase(method="full", epochs=25, learning_rate=1e-2),)
    train(model(), data(), config(**changes, phases=phases), on_event=events.append)
    losses = [e.non_private_loss for e in events if e.non_private_loss is not None]
    assert losses[-1] < 0.5 * losses[0]
    assert all(event.epsilon is None for event in events)


class StopAfter:
    """Says yes at the n-th question."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_stop_and_resume_end_at_the_planned_cost(tmp_path: Path) -> None:
    run = config(phases=X_BITFIT, noise_multiplier=None, epsilon=6.0, delta=1e-3)
    seen: list[Event] = []
    stopped = train(
        model(),
        data(),
        run,
        checkpoint_dir=tmp_path,
        should_stop=StopAfter(6),
        on_event=seen.append,
    )
    assert stopped.status == "stopped" and stopped.account.steps == 6
    assert [event.kind for event in seen][-2:] == ["checkpoint", "stopped"]
    done = train(model(), data(), run, checkpoint_dir=tmp_path)
    assert done.status == "completed"
    assert [(e.label, e.steps) for e in done.account.history] == [("full", 4), ("bitfit", 4)]
    assert done.account.epsilon(1e-3) <= 6.0
    # The first phase's weights came through the checkpoint.
    name = "bert.encoder.layer.0.output.dense.weight"
    assert torch.equal(done.values[name], stopped.values[name])
    again = train(model(), data(), run, checkpoint_dir=tmp_path)
    assert again.account.steps == 8
    assert all(torch.equal(again.values[n], v) for n, v in done.values.items())


def test_a_resumed_run_without_randomness_is_the_uninterrupted_one(tmp_path: Path) -> None:
    """q = 1 and no noise: what remains is the optimiser's state and the position."""
    run = config(
        expected_batch=RECORDS, noise_multiplier=0.0, phases=(Phase(epochs=6),), decay=True
    )
    whole = train(model(), data(), run)
    train(model(), data(), run, checkpoint_dir=tmp_path, should_stop=StopAfter(4))
    resumed = train(model(), data(), run, checkpoint_dir=tmp_path)
    for name, value in whole.values.items():
        torch.testing.assert_close(resumed.values[name], value, rtol=1e-6, atol=1e-8)


def test_resume_never_replays_noise(tmp_path: Path) -> None:
    first, second = Recorded(1), Recorded(2)
    run = config()
    sampler = SeededRandomness(1)
    train(
        model(),
        data(),
        run,
        checkpoint_dir=tmp_path,
        should_stop=StopAfter(4),
        noise=first,
        randomness=sampler,
    )
    train(model(), data(), run, checkpoint_dir=tmp_path, noise=second)
    assert len(first.given) == len(second.given) == 4
    saved = torch.load(tmp_path / FILE, weights_only=True)
    assert "no seed is stored" in saved["seed_policy"]
    assert not any("generator" in key or "rng" in key for key in saved)
    # The same stop resumed twice from the system's source gives two different models.
    ends = []
    for copy in ("a", "b"):
        folder = tmp_path / copy
        folder.mkdir()
        train(model(), data(), run, checkpoint_dir=folder, should_stop=StopAfter(4), noise=first)
        ends.append(train(model(), data(), run, checkpoint_dir=folder).values)
    assert any(not torch.equal(ends[0][name], value) for name, value in ends[1].items())


def test_a_step_that_may_not_be_taken_draws_nothing() -> None:
    """A worker writes each step down before it is taken, and refuses what is not reserved."""
    noise = Recorded(1)

    def take(step: int) -> None:
        if step == 3:
            raise RuntimeError("no such step is reserved")

    with pytest.raises(RuntimeError, match="reserved"):
        train(model(), data(), config(), noise=noise, on_step=take)
    assert len(noise.given) == 3


def test_foreign_checkpoints_are_refused(tmp_path: Path) -> None:
    train(model(), data(), config(), checkpoint_dir=tmp_path, should_stop=StopAfter(2))
    with pytest.raises(CheckpointError, match="another configuration"):
        train(model(), data(), config(max_grad_norm=2.0), checkpoint_dir=tmp_path)
    other = model()
    with torch.no_grad():
        other.get_parameter("bert.encoder.layer.0.output.dense.weight").add_(1)
    with pytest.raises(CheckpointError, match="another base model"):
        train(other, data(), config(), checkpoint_dir=tmp_path)
    ahead = Accountant()
    ahead.charge(0.5, 1.0, 3, "elsewhere")
    with pytest.raises(CheckpointError, match="only grows"):
        train(model(), data(), config(), checkpoint_dir=tmp_path, account=ahead)
    train(model(), data(), config(microbatch=7), checkpoint_dir=tmp_path)  # not another run
    (tmp_path / FILE).write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match="cannot be read"):
        train(model(), data(), config(), checkpoint_dir=tmp_path)


def test_a_checkpoint_that_would_run_code_is_not_read(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    torch.save({"format": Evil()}, tmp_path / FILE)
    with pytest.raises(CheckpointError, match="cannot be read"):
        train(model(), data(), config(), checkpoint_dir=tmp_path)
    assert not (tmp_path / "ran").exists()


def test_the_result_goes_on_the_base_and_off_again(tmp_path: Path) -> None:
    result = train(model(), data(), config())
    path = result.save(tmp_path / "out")
    assert set(load_file(path)) == set(result.values)
    base = model()
    before = {name: value.clone() for name, value in base.state_dict().items()}
    applied = apply_delta(base, path)
    trained = result.model.state_dict()
    assert all(torch.equal(value, trained[name]) for name, value in base.state_dict().items())
    applied.remove()
    assert all(torch.equal(value, before[name]) for name, value in base.state_dict().items())
    with torch.no_grad():
        base.get_parameter("bert.embeddings.word_embeddings.weight").add_(1)
    with pytest.raises(CheckpointError, match="another base"):
        apply_delta(base, path)


def test_added_biases_travel_with_the_delta(tmp_path: Path) -> None:
    class NoBias(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(5)
            self.out = nn.Linear(6, 2, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return torch.as_tensor(self.out(x))

    def loss(model: nn.Module, batch: Any) -> Tensor:
        return nn.functional.cross_entropy(model(batch["x"]), batch["y"], reduction="none")

    records = TensorData({"x": torch.randn(RECORDS, 6), "y": torch.arange(RECORDS) % 2})
    result = train(NoBias(), records, config(add_biases=True, head=None), loss=loss)
    assert result.added == ["out"] and set(result.values) == {"out.added_bias"}
    path = result.save(tmp_path)
    base, x = NoBias(), torch.randn(3, 6)
    before = base(x)
    applied = apply_delta(base, path)
    assert torch.equal(base(x), result.model(x)) and not torch.equal(base(x), before)
    applied.remove()
    assert torch.equal(base(x), before) and type(base.out) is nn.Linear


def test_the_card_states_the_guarantee(tmp_path: Path) -> None:
    result = train(model(), data(), config())
    path = result.save(tmp_path)
    card = read_card(path)
    assert card == json.loads(json.dumps(result.card))
    assert card["epsilon"] == result.account.epsilon(1 / (2 * RECORDS))
    assert card["epsilon_replace_one"] > card["epsilon"]
    text = (tmp_path / "README.md").read_text()
    for part in ("add or remove one record", f"{card['epsilon']:.4g}", "CSPRNG", "| bitfit | 8 |"):
        assert part in text


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 1.0},
        {"noise_multiplier": None},
        {"private": False},
        {"expected_batch": RECORDS + 1},
        {"phases": ()},
        {"clipping": "none"},
        {"seed": 1},
    ],
)
def test_configurations_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        config(**wrong)


def test_data_is_cut_to_the_longest_of_a_batch() -> None:
    records = tokenized([[5], [6, 7], [8, 9, 10]], [0, 1, 0])
    batch = records.batch(torch.tensor([0, 1]).numpy())
    assert batch["input_ids"].tolist() == [[5, 0], [6, 7]]
    assert batch["attention_mask"].tolist() == [[1, 0], [1, 1]]
    assert batch["labels"].tolist() == [0, 1]
    itself = tokenized([[5], [6, 7]]).batch(torch.tensor([0, 1]).numpy())
    assert itself["labels"].tolist() == [[5, -100], [6, 7]]


def test_a_wrong_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    for line, message in (
        ("{", "line 2: not JSON"),
        ('{"label": "a"}', 'line 2: needs a string "text"'),
        ('{"text": "x", "label": "c"}', 'line 2: "label" must be one of a, b'),
    ):
        path.write_text('{"text": "x", "label": "a"}\n' + line + "\n")
        with pytest.raises(ValueError, match=message):
            read_records(path, "classification", ("a", "b"))


def test_the_worker_stops_on_a_signal_and_goes_on(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    base = tmp_path / "base"
    model().save_pretrained(base)
    BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(base)
    lines = [{"text": f"{w} film", "label": w} for w in ("good", "bad")] * 10
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run = config(dataset_size=20, expected_batch=5, phases=(Phase(epochs=40),))
    job = {
        "model": str(base),
        "data": str(tmp_path / "data.jsonl"),
        "labels": ["bad", "good"],
        "output": str(tmp_path / "out"),
        "checkpoints": str(tmp_path / "checkpoints"),
        "run": run.model_dump(mode="json"),
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    command = [sys.executable, "-m", "learning.bitfit", str(tmp_path / "job.json")]
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["kind"] == "step":
            process.send_signal(signal.SIGTERM)
            break
    rest, errors = process.communicate(timeout=120)
    assert process.returncode == 3, errors
    events = [json.loads(line) for line in rest.splitlines()]
    assert events[-1]["kind"] == "stopped" and not (tmp_path / "out").exists()
    last: list[Event] = []
    done = run_job(Job.model_validate(job), last.append)
    assert done.status == "completed" and last[-1].step == 160
    assert read_card(tmp_path / "out" / "delta.safetensors")["history"][0]["steps"] == 160
