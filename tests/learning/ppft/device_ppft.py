"""Both PPFT stages and answering away from the CPU: run by ``test_away_from_the_cpu``."""

import queue
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from on_device import DEVICE, NAME, SIMULATED, exchanged
from ppft_examples import EXAMPLES
from ppft_tiny import DIMENSIONS, WordEncoder, encoder_folder

from connectors.token_encoder import HuggingFaceTokens
from learning.methods import _ppft_run
from learning.methods.base import NO_ROWS, Work
from learning.methods.ppft import PUBLIC, ROWS
from learning.ppft import artefact, dataset
from learning.ppft.decoder import load_decoder
from learning.ppft.export import Limits, encode, export, export_public
from learning.ppft.generate import Sampling, Step, answers, generate
from learning.ppft.model import Lora, PpftModel
from learning.ppft.server.batcher import Batcher, Job
from learning.ppft.train import Plan, train
from privacy.ppft.noise import Noise
from privacy.ppft.prompt import Record
from privacy.ppft.tasks import Task
from privacy.randomness import SeededRandomness


def new_model(decoder: Path, device: str, dtype: str = "float32") -> PpftModel:
    torch.manual_seed(1)
    return PpftModel.create(load_decoder(decoder, device, dtype), DIMENSIONS, Lora(r=2))


def trained(model: PpftModel) -> torch.Tensor:
    return torch.cat([p.detach().cpu().flatten() for p in model.trainable().values()])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_training_resumed_is_that_of_the_cpu(decoder: Path, dtype: str, tmp_path: Path) -> None:
    plan = Plan(steps=8, batch=2, warm=2, every=4)
    ends = []
    for device in ("cpu", NAME):
        stops = iter([False] * 5 + [True])
        given = (EXAMPLES, plan, tmp_path / device, lambda _: None)
        assert train(new_model(decoder, device, dtype), *given, lambda s=stops: next(s)) == 5
        model = new_model(decoder, device, dtype)
        assert train(model, *given) == 8
        ends.append(trained(model))
    assert {p.device for p in model.trainable().values()} == {DEVICE}
    assert {p.dtype for p in model.trainable().values()} == {torch.float32}
    # bf16 keeps 8 bits, and the order of the sums differs.
    tolerance = 5e-3 if dtype == "bfloat16" else 1e-4 if SIMULATED else 2e-3
    torch.testing.assert_close(ends[1], ends[0], rtol=tolerance, atol=tolerance)
    card = artefact.Card("words", DIMENSIONS, 2, model.decoder.name, lora=Lora(r=2))
    artefact.save(model, card, tmp_path / "model")
    again, _ = artefact.load(tmp_path / "model", load_decoder(decoder, NAME, dtype))
    assert again.device == DEVICE
    torch.testing.assert_close(trained(again), ends[1], rtol=1e-3, atol=1e-3)


def test_the_optimiser_goes_on_counting_on_the_cpu(
    decoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read from the GPU, every parameter's count would make every step wait for the GPU."""
    made: list[torch.optim.Optimizer] = []
    plain = torch.optim.AdamW.__init__

    def remember(self: torch.optim.AdamW, *args: object, **kwargs: object) -> None:
        made.append(self)
        plain(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(torch.optim.AdamW, "__init__", remember)
    for steps in (2, 4):
        plan = Plan(steps=steps, batch=2, warm=1, every=2)
        train(new_model(decoder, NAME), EXAMPLES, plan, tmp_path / "c", lambda _: None)
    states = list(made[-1].state.values())
    assert states and all(state["step"].device.type == "cpu" for state in states)
    assert all(state["exp_avg"].device == DEVICE and float(state["step"]) >= 2 for state in states)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_answers_are_those_of_the_cpu(decoder: Path, dtype: str) -> None:
    found = []
    for device in ("cpu", NAME):
        model = new_model(decoder, device, dtype)
        torch.manual_seed(5)
        sampled = list(generate(model, EXAMPLES, [Sampling(6, t) for t in (0.0, 1.0, 0.7, 1.3)]))
        assert {step.index for step in sampled if step.finish} == {0, 1, 2, 3}
        # A GPU draws by itself, and may take another of two tokens that bf16 cannot tell apart.
        texts = [step.text for step in sampled] if SIMULATED else []
        found.append(
            (answers(model, EXAMPLES, 6) if SIMULATED or dtype == "float32" else [], texts)
        )
    assert found[0] == found[1]


def test_processes_exchange_what_lies_on_the_device(
    decoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NCCL takes nothing else."""
    model, seen = new_model(decoder, NAME), exchanged(monkeypatch)
    train(model, EXAMPLES, Plan(steps=2, batch=2, warm=1), report=lambda _: None)
    assert len(seen) == 3 * len(model.trainable()) + 2  # sent once, averaged twice; two decisions
    assert {tensor.device for tensor in seen} == {DEVICE}


def test_the_servers_thread_answers(decoder: Path) -> None:
    model = new_model(decoder, NAME)
    batcher = Batcher(model, batch=3)
    given: list[queue.Queue[Step | None]] = [queue.Queue() for _ in EXAMPLES]
    for example, steps in zip(EXAMPLES, given, strict=True):
        batcher.submit(Job(example, Sampling(4), steps.put))
    batcher.close()
    texts = []
    for steps in given:
        told = [steps.get_nowait() for _ in range(steps.qsize())]
        assert told and all(step is not None for step in told)
        texts.append("".join(step.text for step in told if step is not None).strip())
    assert texts == answers(model, EXAMPLES, 4)


def test_an_encoder_gives_its_states_to_numpy(tmp_path: Path) -> None:
    folder = encoder_folder(tmp_path / "encoder")
    text = "the film is great and the weather is warm"
    ours, theirs = (HuggingFaceTokens(str(folder), d).encode([text])[0] for d in (NAME, "cpu"))
    assert np.allclose(ours.states, theirs.states, atol=1e-6)


def test_tied_weights_stay_tied(decoder: Path) -> None:
    model = load_decoder(decoder, NAME).model
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight
    assert {p.device for p in model.parameters()} == {DEVICE}


def test_a_job_of_both_stages(decoder: Path, tmp_path: Path) -> None:
    assert _ppft_run.own_device() == DEVICE
    told: list[dict[str, Any]] = []
    records = [
        Record(Task.SENTIMENT, f"the film is {word} and fine", answer=answer)
        for word, answer in (("good", "positive"), ("bad", "negative")) * 6
    ]
    encoded = encode(records, WordEncoder(), 2, Limits())
    public = export_public(encoded, WordEncoder(), 2)
    noisy, _ = export(encoded, WordEncoder(), 2, Noise("laplace", 100.0), (), SeededRandomness(0))
    base = tmp_path
    for stage, data in ((1, public), (2, noisy)):
        folder = tmp_path / f"stage-{stage}"
        dataset.save(data, folder / ROWS)
        dataset.save(public, folder / PUBLIC)
        work = Work(
            method="ppft",
            config={
                "stage": stage,
                "steps": 4,
                "batch_size": 4,
                "warmup_steps": 1,
                "learning_rate": 1e-3,
                "checkpoint_every": 2,
                "lora_rank": 2,
                "task": "sentiment",
            },
            base=base,
            labels=(),
            rows=NO_ROWS,
            public=None,
            seed=1,
            folder=folder,
            should_stop=lambda: False,
            take=lambda _: None,
            emit=lambda _message, _kind, data: told.append(dict(data)),
            decoder=decoder,
        )
        result = _ppft_run.run(work)
        assert result is not None and result.facts["valid_loss"] > 0
        base = folder / "result"
    assert artefact.read_card(base).epsilon == 100.0 and artefact.read_card(base).steps == 8
    assert any("valid_loss" in data for data in told)
