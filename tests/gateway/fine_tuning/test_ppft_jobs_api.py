"""Jobs of the method ppft through the official client: noised here, trained from rows and answers."""

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import openai
import pytest
from jobs_gateway import Running, running_gateway
from ppft_job_models import BASE, CANARY, DECODER, ENCODER, chats, films, save_models

from store.ledger import Ledger

KEPT = {"worker.log", "events.jsonl"}
salts = (f"s{n}-" for n in itertools.count())


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("ppft-trainer")
    save_models(folder / "models")
    with running_gateway(folder, ppft_training_epsilon=900.0) as running:
        yield running


def create(trainer: Running, file: str, model: str = BASE, **more: Any) -> Any:
    fields = {k: more.pop(k) for k in ("validation_file", "suffix") if k in more}
    method: Any = {"type": "ppft", "ppft": {"hyperparameters": more}}
    return trainer.acme.fine_tuning.jobs.create(
        model=model, training_file=file, method=method, **fields
    )


class Watch:
    """Reads every byte of a job's folder, again and again, while the job runs."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._end = folder, threading.Event()
        self.seen: set[str] = set()
        self.found: list[str] = []
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        self._thread.join(10)

    def _look(self) -> None:
        while not self._end.wait(0.02):
            with suppress(OSError):  # what is replaced while it is read is read the next time
                for path in self._folder.rglob("*"):
                    if path.is_file():
                        self._read(path.name, path.read_bytes())

    def _read(self, name: str, content: bytes) -> None:
        self.seen.add(name)
        if CANARY.encode() in content or b"film" in content:
            self.found.append(name)


@pytest.fixture(scope="module")
def trained(trainer: Running) -> Any:
    made = create(
        trainer, trainer.upload(films()), validation_file=trainer.upload(films(6, "v")),
        suffix="films", task="sentiment", epsilon=40.0, steps=4, batch_size=8, checkpoint_every=2,
        warmup_steps=1, k="auto",
    )  # fmt: skip
    watch = Watch(trainer.folder(made.id))
    done = trainer.wait(made.id)
    watch.close()
    done.watched = watch
    return done


def test_every_record_is_charged_once_in_an_account_of_its_own(
    trainer: Running, trained: Any
) -> None:
    cost = trained.to_dict()["penname"]
    assert cost["account"] == "ppft" and "euclidean" in cost["adjacency"]
    rows = Ledger(trainer.services.db).rows("acme", accounts=["ppft"])
    rows = [row for row in rows if row.request_id == trained.id]
    assert len(rows) == 24 == len({row.entity_hmac for row in rows})
    assert {row.metric for row in rows} == {"euclidean"}
    assert {row.epsilon for row in rows} == {80.0 * 4}  # seven words in windows of 2: four rows
    assert max(row.epsilon for row in rows) == cost["epsilon_spent"] == cost["epsilon_reserved"]
    assert cost["delta"] == 0.0 and (cost["steps_total"], cost["steps_charged"]) == (4, 1)
    other = Ledger(trainer.services.db).rows("acme", accounts=["dpsgd", "entity"])
    assert [row for row in other if row.request_id == trained.id] == []


def test_no_text_ever_lies_in_the_folder(trainer: Running, trained: Any) -> None:
    assert trained.watched.seen >= {"rows.safetensors", "answers.jsonl", "spec.json"}
    assert trained.watched.found == []
    deadline = time.monotonic() + 20
    while left := {path.name for path in trainer.folder(trained.id).rglob("*")} - KEPT:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def test_events_tell_public_figures_only(trainer: Running, trained: Any) -> None:
    events = trainer.acme.fine_tuning.jobs.list_events(trained.id, limit=100).data
    messages = [event.message for event in events]
    assert "Noised 24 of 24 records." in messages and "Training begins." in messages
    told = {key for event in events for key in event.data}  # type: ignore[attr-defined]
    assert {"valid_loss", "valid_accuracy", "trained_parameters"} <= told
    assert not [key for key in told if "loss" in key and not key.startswith("valid_")]
    assert CANARY not in str(events)
    found = list(trainer.acme.fine_tuning.jobs.checkpoints.list(trained.id))
    assert [c.step_number for c in found] == [4, 2]
    assert found[0].metrics.full_valid_loss is not None


def test_the_model_answers_in_the_gateway_for_nothing(trainer: Running, trained: Any) -> None:
    name = trained.fine_tuned_model
    assert name.startswith(f"ft:{BASE}:acme:films:")
    before = len(Ledger(trainer.services.db).rows("acme"))
    question: Any = [{"role": "user", "content": "the film is very good"}]
    answer = trainer.acme.chat.completions.create(model=name, messages=question, max_tokens=5)
    assert answer.choices[0].message.content is not None
    assert answer.usage is not None and answer.usage.prompt_tokens == 3
    assert 1 <= answer.usage.completion_tokens <= 5
    assert len(Ledger(trainer.services.db).rows("acme")) == before
    empty: Any = [{"role": "user", "content": ""}]
    with pytest.raises(openai.BadRequestError, match="0 rows"):
        trainer.acme.chat.completions.create(model=name, messages=empty)
    ends = set()
    for _ in range(20):  # drawn at random, few answers end at their first token
        cut = trainer.acme.chat.completions.create(
            model=name, messages=question, max_tokens=1, temperature=2
        )
        ends.add(cut.choices[0].finish_reason)
    assert "length" in ends


@pytest.mark.parametrize(
    "more",
    [
        {"n": 2},
        {"stop": ["."]},
        {"logprobs": True},
        {"response_format": {"type": "json_object"}},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
    ],
)
def test_what_a_tuned_model_cannot_do_is_refused(
    trainer: Running, trained: Any, more: dict[str, Any]
) -> None:
    asked: Any = {"messages": [{"role": "user", "content": "the film"}], **more}
    with pytest.raises(openai.BadRequestError, match="not supported by fine-tuned") as caught:
        trainer.acme.chat.completions.create(model=trained.fine_tuned_model, **asked)
    assert caught.value.param == next(iter(more))


def test_the_result_is_what_the_ppft_server_loads(
    trainer: Running, trained: Any, tmp_path: Path
) -> None:
    from learning.ppft import artefact
    from learning.ppft.decoder import load_decoder

    for file in trained.result_files:
        name = trainer.acme.files.retrieve(file).filename
        (tmp_path / name).write_bytes(trainer.acme.files.content(file).read())
    assert {path.name for path in tmp_path.iterdir()} == {"weights.safetensors", "card.json"}
    models = trainer.services.settings.resolved_models_dir
    _, card = artefact.load(tmp_path, load_decoder(models / DECODER))
    assert (card.stage, card.steps, card.mechanism, card.epsilon) == (2, 5, "laplace", 40.0)
    assert (card.encoder, card.k, card.task) == (ENCODER, 2, "sentiment")


def test_a_data_set_is_not_noised_past_its_budget(trainer: Running, trained: Any) -> None:
    # 320 of 900 are spent; noised again at 40 it would be 640, at 80 it is 960.
    again = trainer.upload(b"\n".join(films().splitlines()[::-1]))
    with pytest.raises(openai.PermissionDeniedError, match="account ppft.*max_slots") as caught:
        create(trainer, again, task="sentiment", epsilon=80.0, steps=1)
    assert caught.value.code == "privacy_budget_exceeded"
    made = create(trainer, again, task="sentiment", epsilon=40.0, steps=10_000)
    trainer.acme.fine_tuning.jobs.cancel(made.id)
    trainer.wait(made.id, "cancelled")


def test_a_running_job_is_cancelled_and_stays_charged(trainer: Running) -> None:
    made = create(
        trainer, trainer.upload(films(8, next(salts))), task="sentiment", epsilon=5.0, steps=100_000
    )
    trainer.wait_for_steps(made.id)
    began = time.monotonic()
    trainer.acme.fine_tuning.jobs.cancel(made.id)
    done = trainer.wait(made.id, "cancelled").to_dict()["penname"]
    print("cancelled after", time.monotonic() - began)
    assert done["epsilon_spent"] == done["epsilon_reserved"] > 0


def test_stage_1_makes_a_model_from_public_rows_for_nothing(trainer: Running) -> None:
    made = create(
        trainer, trainer.upload(chats()), model=DECODER, stage=1, public=True, encoder=ENCODER,
        k=2, lora_rank=2, steps=2, batch_size=4,
    )  # fmt: skip
    done = trainer.wait(made.id)
    cost = done.to_dict()["penname"]
    assert (cost["epsilon_reserved"], cost["epsilon_spent"], cost["steps_done"]) == (0.0, 0.0, 2)
    assert done.method.to_dict()["ppft"]["hyperparameters"]["encoder"] == ENCODER
    question: Any = [{"role": "user", "content": "what is it"}]
    answer = trainer.acme.chat.completions.create(
        model=done.fine_tuned_model, messages=question, max_tokens=3
    )
    assert answer.choices[0].finish_reason in ("stop", "length")


@pytest.fixture(scope="module")
def file(trainer: Running) -> str:
    return trainer.upload(films(8, "bad-"))


@pytest.mark.parametrize(
    ("settings", "param", "says"),
    [
        ({"epsilon": 0}, "epsilon", "greater than or equal to 0.000001"),
        ({"k": 4}, "k", "is 2 in the base"),
        ({"lora_rank": 16}, "lora_rank", "is 4 in the base"),
        ({"encoder": "minilm"}, "encoder", "is tiny-words in the base"),
        ({"task": "poetry"}, "task", "the tasks are answer"),
        ({"task": "choice"}, "task", "use answer"),
        ({"task": "verdict"}, "task", "yes, no, maybe, and that of line 1"),
        ({"steps": 1, "n_epochs": 1}, None, "not both"),
        ({"max_slots": 1}, "max_slots", "leaves no record"),
        ({"stage": 1}, None, "set public to true"),
        ({"stage": 1, "public": True}, "stage", "the base is a PPFT model"),
        ({"stage": 1, "public": True, "epsilon": 3}, None, "no noise"),
        ({"public": True}, None, "stage 2 noises every row"),
        ({"model": DECODER}, "stage", "ppft-intent"),
        ({"model": ENCODER}, "model", "neither a PPFT model"),
        (
            {"model": DECODER, "stage": 1, "public": True, "encoder": "../x"},
            "encoder",
            "no encoder",
        ),
        ({"mechanism": "none"}, "mechanism", "'laplace'"),
        ({"learning_rate": 2}, "learning_rate", "less than or equal"),
        ({"noise": 1}, "noise", "no such setting; there are"),
    ],
)
def test_wrong_settings_are_named(
    trainer: Running, file: str, settings: dict[str, Any], param: str | None, says: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        create(trainer, file, **settings)
    full = {None: "method.ppft", "model": "model"}.get(param, f"method.ppft.{param}")
    assert caught.value.param == full and says in str(caught.value)
    assert CANARY not in str(caught.value)


def test_a_ppft_model_is_no_base_of_other_methods(trainer: Running, file: str) -> None:
    method: Any = {"type": "dp_bitfit", "dp_bitfit": {}}
    with pytest.raises(openai.BadRequestError, match="method ppft"):
        trainer.acme.fine_tuning.jobs.create(model=BASE, training_file=file, method=method)


def test_gaussian_noise_composes_in_zcdp(trainer: Running) -> None:
    from learning.methods.registry import method

    kind = method("ppft")
    entry = {"slots": 4, "dimensions": 16, "mechanism": "gaussian", "epsilon": 5.0, "steps": 1}
    alone, twice = kind.epsilon([[entry]], 1e-6), kind.epsilon([[entry]] * 2, 1e-6)
    assert alone < twice < 2 * alone
    pure = {**entry, "mechanism": "laplace"}
    assert kind.epsilon([[pure]] * 2, 1e-6) == 2 * 2 * 5.0 * 4
    assert kind.epsilon([[pure], [entry]], 1e-6) == pytest.approx(40.0 + alone)
