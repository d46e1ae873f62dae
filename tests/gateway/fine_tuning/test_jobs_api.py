"""Fine-tuning jobs through the official client against a real gateway and real workers."""

import itertools
import json
import re
import threading
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from jobs_gateway import ALIAS, CANARY, TINY, Running, rows
from openai.types import Model, ModelDeleted
from openai.types.chat import ChatCompletion
from openai.types.fine_tuning import FineTuningJob, FineTuningJobEvent
from openai.types.fine_tuning.jobs import FineTuningJobCheckpoint
from safetensors import safe_open

salts = (f"s{n}-" for n in itertools.count())


@pytest.fixture(scope="module")
def trained(trainer: Running) -> Any:
    """A job that has succeeded, with a public validation file."""
    made = trainer.create(
        trainer.upload(rows()),
        validation_file=trainer.upload(rows(10, "v")),
        suffix="mood",
        metadata={"team": "a"},
        labels=["bad", "good"],
        phases=[{"method": "last_layer", "steps": 6, "learning_rate": 0.1}, {"steps": 3}],
        steps="auto",
        checkpoint_every=3,
    )
    assert made.status == "queued"
    return trainer.wait(made.id)


def test_a_finished_job_has_the_clients_shape(trainer: Running, trained: Any) -> None:
    shape = trained.to_dict()
    # The SDK's type lists the methods of one provider only; everything else is as it says.
    FineTuningJob.model_validate({**shape, "method": None})
    assert shape["method"]["type"] == "dp_bitfit"
    assert re.fullmatch(rf"ft:{TINY}:acme:mood:[0-9a-f]{{8}}", trained.fine_tuned_model)
    assert trained.metadata == {"team": "a"}
    cost = shape["penname"]
    assert 0 < cost["epsilon_spent"] <= 4.0 and cost["delta"] == 1e-3
    assert cost["steps_charged"] == cost["steps_total"] == 9
    ledger = trainer.services.db
    from store.ledger import Ledger

    (row,) = [
        r for r in Ledger(ledger).rows("acme", accounts=["dpsgd"]) if r.request_id == trained.id
    ]
    assert row.epsilon == cost["epsilon_spent"]


def test_events_tell_privacy_and_public_metrics_only(trainer: Running, trained: Any) -> None:
    events = list(trainer.acme.fine_tuning.jobs.list_events(trained.id, limit=5))  # all pages
    for event in events:
        FineTuningJobEvent.model_validate(event.to_dict())
    assert [e.id for e in events] == sorted(
        (e.id for e in events), key=lambda i: i[8:], reverse=True
    )
    steps: list[Any] = [e for e in events[::-1] if e.message.startswith("Step")]
    spent = [e.data["epsilon"] for e in steps]
    assert spent == sorted(spent) and spent[-1] <= 4.0
    told = {key for e in events for key in e.data}  # type: ignore[attr-defined]
    public = {"valid_loss", "valid_accuracy"}  # of the validation file
    cost = {"epsilon", "epsilon_reserved", "delta"}
    place = {"step", "steps", "total_steps", "phase", "attempt", "eta_seconds"}
    assert told == public | cost | place | {"trained_parameters", "model_parameters"}


def test_checkpoints_carry_metrics_of_the_public_file(trainer: Running, trained: Any) -> None:
    found = list(trainer.acme.fine_tuning.jobs.checkpoints.list(trained.id))
    assert [c.step_number for c in found] == [9, 6, 3]
    for checkpoint in found:
        FineTuningJobCheckpoint.model_validate(checkpoint.to_dict())
        assert checkpoint.fine_tuning_job_id == trained.id
        assert checkpoint.metrics.full_valid_loss is not None
    first = trainer.acme.fine_tuning.jobs.checkpoints.list(trained.id, limit=1)
    assert first.has_more and [c.step_number for c in first] == [9, 6, 3]


def test_the_stream_of_events_ends_with_the_job(trainer: Running, trained: Any) -> None:
    answer = trainer.acme._client.get(
        f"{trainer.url}/fine_tuning/jobs/{trained.id}/events?stream=true",
        headers={"authorization": f"Bearer {trainer.acme.api_key}"},
    )
    assert answer.headers["content-type"].startswith("text/event-stream")
    frames = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert frames[-1] == "[DONE]"
    listed = trainer.acme.fine_tuning.jobs.list_events(trained.id, limit=100).data
    assert [json.loads(f)["id"] for f in frames[:-1]] == [e.id for e in listed][::-1]


def test_the_result_is_a_small_delta_with_a_card(
    trainer: Running, trained: Any, tmp_path: Path
) -> None:
    delta, card = (trainer.acme.files.content(f).read() for f in trained.result_files)
    path = tmp_path / "delta.safetensors"
    path.write_bytes(delta)
    with safe_open(path, framework="pt") as file:
        names = set(file.keys())
    assert "classifier.weight" in names and all("embeddings" not in n or "bias" in n for n in names)
    assert b"differential privacy" in card and b"adjacency" not in card
    found = trainer.acme.files.list(purpose="fine-tune-results")
    assert set(trained.result_files) <= {file.id for file in found}


def test_the_model_answers_as_responses(trainer: Running, trained: Any) -> None:
    model = trained.fine_tuned_model
    with openai.OpenAI(
        base_url=trainer.url, api_key=trainer.acme.api_key, _strict_response_validation=True
    ) as client:
        raw = client.responses.with_raw_response.create(
            model=model, input="Ilse Varga had a wonderful happy delight", instructions="Judge."
        )
        made = raw.parse()
        assert made.output_text in ("good", "bad") and made.model == model
        assert made.to_dict()["penname"]["local"] is True  # type: ignore[index]
        events = list(
            client.responses.create(
                model=model, input="a terrible failure", stream=True, previous_response_id=made.id
            )
        )
        done: Any = events[-1]
        assert done.type == "response.completed"
        assert done.response.output_text in ("good", "bad")
        assert done.response.usage.input_tokens > 0
        assert client.responses.retrieve(done.response.id) == done.response
        assert len(client.responses.input_items.list(done.response.id).data) == 3
    session = trainer.services.sessions.get("acme", raw.headers["x-penname-session"])
    assert session is not None and session.spent_epsilon == 0.0 and session.entries == ()


def test_responses_that_are_not_stored_or_not_possible(trainer: Running, trained: Any) -> None:
    model = trained.fine_tuned_model
    before = trainer.services.sessions.list("acme")
    made = trainer.acme.responses.create(model=model, input="an awful failure", store=False)
    assert made.output_text in ("good", "bad")
    assert trainer.services.sessions.list("acme") == before
    with pytest.raises(openai.NotFoundError):
        trainer.other.responses.create(model=model, input="x")
    tool: Any = {"type": "function", "name": "f", "parameters": {}, "strict": False}
    wishes: list[tuple[str, dict[str, Any]]] = [
        ("tools", {"tools": [tool]}),
        ("text.format", {"text": {"format": {"type": "json_object"}}}),
        (
            "penname.vector_store_ids",
            {"extra_body": {"penname": {"vector_store_ids": ["vs_1"]}}},
        ),
    ]
    for param, fields in wishes:
        with pytest.raises(openai.BadRequestError) as caught:
            trainer.acme.responses.create(model=model, input="x", **fields)
        assert caught.value.param == param


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("tools", {"tools": [{"type": "function", "function": {"name": "f"}}]}),
        ("response_format", {"response_format": {"type": "json_object"}}),
        ("n", {"n": 2}),
        (
            "penname.vector_store_ids",
            {"extra_body": {"penname": {"vector_store_ids": ["vs_1"]}}},
        ),
        (
            "messages[0].content[1].type",
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "x"},
                            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
                        ],
                    }
                ]
            },
        ),
        ("messages", {"messages": [{"role": "user", "content": " "}]}),
        ("messages", {"messages": [{"role": "assistant", "content": "x"}]}),
    ],
)
def test_what_is_not_possible_is_told_in_chats_too(
    trainer: Running, trained: Any, param: str, fields: dict[str, Any]
) -> None:
    messages: Any = [{"role": "user", "content": "x"}]
    with pytest.raises(openai.BadRequestError) as caught:
        trainer.acme.chat.completions.create(
            model=trained.fine_tuned_model, **{"messages": messages, **fields}
        )
    assert caught.value.param == param
    plain: Any = {"response_format": {"type": "text"}, "n": 1, "tools": None}
    trainer.acme.chat.completions.create(model=trained.fine_tuned_model, messages=messages, **plain)


def test_the_model_answers_here_and_can_be_removed(trainer: Running, trained: Any) -> None:
    name = trained.fine_tuned_model
    listed = {model.id: model for model in trainer.acme.models.list()}
    Model.model_validate(listed[name].to_dict())
    assert trainer.acme.models.retrieve(name).id == name
    answers = {}
    for text in ("a wonderful happy delight", "a terrible awful failure"):
        answer = trainer.acme.chat.completions.create(
            model=name, messages=[{"role": "user", "content": text}]
        )
        ChatCompletion.model_validate(answer.to_dict())
        answers[text] = answer.choices[0].message.content
        scores = answer.to_dict()["penname"]["scores"]  # type: ignore[index]
        assert sum(scores.values()) == pytest.approx(1) and set(scores) == {"good", "bad"}
    # Six noisy steps on this data are enough to tell the two apart nearly always, not surely.
    assert set(answers.values()) <= {"good", "bad"}
    with trainer.acme.chat.completions.create(
        model=name, messages=[{"role": "user", "content": "a terrible awful failure"}], stream=True
    ) as chunks:
        text = "".join(c.choices[0].delta.content or "" for c in chunks)
    assert text == answers["a terrible awful failure"]
    with trainer.acme.chat.completions.create(
        model=name,
        messages=[{"role": "user", "content": "x"}],
        stream=True,
        stream_options={"include_usage": True},
    ) as chunks:
        *others, last = list(chunks)
    assert last.usage and last.usage.prompt_tokens and not last.choices
    assert not any(chunk.usage for chunk in others)

    assert name not in [model.id for model in trainer.other.models.list()]
    for call in (
        lambda: trainer.other.models.retrieve(name),
        lambda: trainer.other.models.delete(name),
        lambda: trainer.other.chat.completions.create(
            model=name, messages=[{"role": "user", "content": "x"}]
        ),
    ):
        with pytest.raises(openai.NotFoundError):
            call()
    trainer.acme.files.delete(trained.result_files[0])
    with pytest.raises(openai.InternalServerError, match="was deleted") as refused:
        trainer.acme.with_options(max_retries=0).chat.completions.create(
            model=name, messages=[{"role": "user", "content": "in memory before"}]
        )
    assert refused.value.status_code == 503
    gone = trainer.acme.models.delete(name)
    assert ModelDeleted.model_validate(gone.to_dict()).deleted
    with pytest.raises(openai.NotFoundError):
        trainer.acme.models.retrieve(name)
    with pytest.raises(openai.NotFoundError):
        trainer.acme.files.retrieve(trained.result_files[0])
    with pytest.raises(openai.BadRequestError, match="fine-tuned"):
        trainer.acme.models.delete("unused")


def test_nothing_of_the_data_stays_in_the_folder(trainer: Running, trained: Any) -> None:
    folder = trainer.folder(trained.id)
    assert folder.stat().st_mode & 0o777 == 0o700
    left = {path.name: path for path in folder.rglob("*")}
    assert set(left) == {"worker.log", "events.jsonl"}
    for path in left.values():
        assert path.stat().st_mode & 0o077 == 0
        assert CANARY not in path.read_text()


def test_a_data_set_cannot_be_trained_past_its_budget(trainer: Running, trained: Any) -> None:
    # The same records in another order are the same data set; its budget is 6 at delta 1e-3.
    again = trainer.upload(b"\n".join(rows().splitlines()[::-1]))
    with pytest.raises(openai.PermissionDeniedError) as caught:
        trainer.create(again, epsilon=5.5)
    assert caught.value.code == "privacy_budget_exceeded"
    assert caught.value.response.headers["x-should-retry"] == "false"
    # So is every record, among others, with another label or spacing, or written in capitals.
    changed = [json.loads(line) for line in rows().splitlines()[:40]]
    labels = [row["label"] for row in changed]
    for row, label in zip(changed, labels[1:] + labels[:1], strict=True):
        row |= {"text": f" {row['text'].upper()}\n", "label": label}
    changed.append({"text": "a row of nobody else", "label": labels[0]})
    varied = trainer.upload("\n".join(map(json.dumps, changed)).encode())
    with pytest.raises(openai.PermissionDeniedError, match="40 of its rows are in another data"):
        trainer.create(varied, epsilon=5.5)
    small = trainer.create(again, epsilon=1.0)
    # Jointly composed, so less than the sum; and what is cancelled unstarted is given back.
    trainer.acme.fine_tuning.jobs.cancel(small.id)
    trainer.wait(small.id, "cancelled")


def test_pages_metadata_and_tenants(trainer: Running, trained: Any) -> None:
    jobs = trainer.acme.fine_tuning.jobs
    assert [j.id for j in jobs.list(metadata={"team": "a"})] == [trained.id]
    assert jobs.list(metadata={"team": "b"}).data == []
    every = [j.id for j in jobs.list(limit=1)]
    assert trained.id in every and len(every) == len(set(every))
    assert trainer.other.fine_tuning.jobs.list().data == []
    theirs = trainer.other.fine_tuning.jobs
    for call in (theirs.retrieve, theirs.cancel, theirs.pause, theirs.resume, theirs.list_events):
        with pytest.raises(openai.NotFoundError):
            call(trained.id)
    for refused in (jobs.cancel, jobs.pause, jobs.resume):
        with pytest.raises(openai.BadRequestError, match="succeeded"):
            refused(trained.id)


def refused(trainer: Running, file: str, **more: Any) -> openai.BadRequestError:
    with pytest.raises(openai.BadRequestError) as caught:
        trainer.create(file, **more)
    return caught.value


@pytest.fixture(scope="module")
def file(trainer: Running) -> str:
    return trainer.upload(rows(40, "bad-"))


@pytest.mark.parametrize(
    ("settings", "param", "says"),
    [
        ({"epsilon": -1}, "method.dp_bitfit.epsilon", "greater than 0"),
        ({"epsilon": "lots"}, "method.dp_bitfit.epsilon", "valid number"),
        ({"delta": 0.5}, "method.dp_bitfit.delta", "smaller than 1 / dataset_size"),
        ({"dataset_size": 10**18}, "method.dp_bitfit.dataset_size", "less than or equal"),
        ({"phases": [{"steps": 10**6}] * 8, "steps": "auto"}, "method.dp_bitfit.steps", "8000000"),
        ({"n_epochs": 3}, "method.dp_bitfit", "not both"),
        ({"clipping": "none"}, "method.dp_bitfit.clipping", "'automatic'"),
        ({"report_loss": True}, "method.dp_bitfit.report_loss", "no such setting; there are"),
        ({"phases": [{"method": "lora"}]}, "method.dp_bitfit.phases.0.method", "'bitfit'"),
        ({"labels": ["good"]}, "training_file", 'line 2: field "label" is none of the 1'),
        ({"model": "gpt-4o"}, "model", "all-MiniLM-L6-v2"),
        ({"model": "../tiny"}, "model", "no such base model"),
        ({"suffix": "a b"}, "suffix", "pattern"),
        ({"model": "SmolLM2-135M-Instruct"}, "training_file", "messages"),
    ],
)
def test_wrong_settings_are_named(
    trainer: Running, file: str, settings: dict[str, Any], param: str, says: str
) -> None:
    error = refused(trainer, file, **settings)
    assert error.param == param and says in str(error)


@pytest.mark.parametrize("kind", ["supervised", "dpo", "nonsense"])
def test_an_unknown_method_is_a_clear_400(trainer: Running, file: str, kind: str) -> None:
    method: Any = {"type": kind, kind: {}}
    with pytest.raises(openai.BadRequestError, match="dp_bitfit") as caught:
        trainer.acme.fine_tuning.jobs.create(model=TINY, training_file=file, method=method)
    assert (caught.value.param, caught.value.code) == ("method.type", "method_not_found")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"text": "Oberhuber", "label": "a"}\n{"text": ""}\n', "line 2"),
        (b"not json Oberhuber\n", "line 1: is not JSON"),
        (b'{"text": "Oberhuber", "label": "a"}\n', "two different labels"),
    ],
)
def test_bad_rows_are_named_by_line_never_by_content(
    trainer: Running, content: bytes, says: str
) -> None:
    error = refused(trainer, trainer.upload(content))
    assert says in str(error) and "Oberhuber" not in str(error)


def test_files_are_checked_for_purpose_and_owner(trainer: Running, file: str) -> None:
    other = trainer.acme.files.create(file=("a.jsonl", rows()), purpose="assistants").id
    assert "purpose" in str(refused(trainer, other))
    assert refused(trainer, "file-0").code == "file_not_found"
    with pytest.raises(openai.BadRequestError, match="not the id of a file"):
        trainer.create(file, client=trainer.other)


def test_a_retried_request_makes_one_job(trainer: Running) -> None:
    file = trainer.upload(rows(30, next(salts)))
    headers = {"Idempotency-Key": "retry-1"}
    first = trainer.create(file, extra_headers=headers)
    again = trainer.create(file, extra_headers=headers)
    assert first.id == again.id
    trainer.acme.fine_tuning.jobs.cancel(first.id)
    trainer.wait(first.id, "cancelled")


def test_a_running_job_is_paused_resumed_and_finished(trainer: Running) -> None:
    jobs = trainer.acme.fine_tuning.jobs
    made = trainer.create(trainer.upload(rows(30, next(salts))), steps=30, batch_size=5)
    trainer.wait_for_steps(made.id)
    assert jobs.pause(made.id).status == "running"
    paused = trainer.wait(made.id, "paused")
    assert not (trainer.folder(made.id) / "public.jsonl").exists()
    done_before = paused.to_dict()["penname"]["steps_done"]
    assert jobs.pause(made.id).status == "paused"
    assert jobs.resume(made.id).status == "queued"
    done = trainer.wait(made.id).to_dict()["penname"]
    messages = [e.message for e in jobs.list_events(made.id, limit=100)]
    assert f"Phase bitfit from step {done_before}" in messages
    assert done["steps_charged"] == done["steps_total"] == 30
    assert done["epsilon_spent"] == pytest.approx(done["epsilon_reserved"])


def test_a_paused_job_that_is_cancelled_leaves_no_checkpoint(trainer: Running) -> None:
    jobs = trainer.acme.fine_tuning.jobs
    made = trainer.create(trainer.upload(rows(30, next(salts))), steps=300, batch_size=5)
    trainer.wait_for_steps(made.id)
    jobs.pause(made.id)
    trainer.wait(made.id, "paused")
    assert (trainer.folder(made.id) / "checkpoint").exists()
    jobs.cancel(made.id)
    left = {path.name for path in trainer.folder(made.id).iterdir()}
    assert left <= {"worker.log", "events.jsonl"}


def test_validation_rows_are_no_training_rows(trainer: Running, file: str) -> None:
    taken = rows(40, "bad-").splitlines()[7:9]
    taken[1] = json.dumps({**json.loads(taken[1]), "label": "another"}).encode()
    mixed = trainer.upload(rows(3, "v") + b"\n".join(taken))
    for validation, told in (
        (file, "40 of its rows.*line 1, 2, 3, 4, 5, "),
        (mixed, "2 .*line 4, 5\\)"),
    ):
        error = refused(trainer, file, validation_file=validation)
        assert error.code == "invalid_validation_file" and CANARY not in str(error)
        assert re.search(told, str(error))


@pytest.mark.parametrize("after", ["ftevent-" + "f" * 16, "ftckpt_" + "1" * 40, "ftevent--5", "x"])
def test_a_bad_cursor_is_a_400(trainer: Running, trained: Any, after: str) -> None:
    for listed in (
        trainer.acme.fine_tuning.jobs.list_events,
        trainer.acme.fine_tuning.jobs.checkpoints.list,
    ):
        with pytest.raises(openai.BadRequestError, match="after"):
            listed(trained.id, after=after)


def test_an_empty_idempotency_key_is_none(trainer: Running) -> None:
    headers = {"Idempotency-Key": ""}
    made = [
        trainer.create(trainer.upload(rows(30, next(salts))), extra_headers=headers, steps=300)
        for _ in range(2)
    ]
    assert made[0].id != made[1].id
    for job in made:
        trainer.acme.fine_tuning.jobs.cancel(job.id)
        trainer.wait(job.id, "cancelled", "succeeded")


def test_a_tuned_model_needs_no_thread_of_the_other_chats(trainer: Running) -> None:
    made = trainer.create(trainer.upload(rows(30, next(salts))), steps=1, epsilon=1.0)
    name = trainer.wait(made.id).fine_tuned_model
    held = threading.Event()
    for _ in range(trainer.services.settings.worker_threads):
        trainer.services.workers.submit(held.wait, 30)
    try:
        answer = trainer.acme.with_options(timeout=20).chat.completions.create(
            model=name, messages=[{"role": "user", "content": "a wonderful delight"}]
        )
    finally:
        held.set()
    assert answer.choices[0].message.content in ("good", "bad")


def test_a_stream_of_events_whose_job_goes_away_tells_it(trainer: Running) -> None:
    trainer.services.tenants.ensure("leaver")
    key, _ = trainer.services.keys.create("client", "leaver")
    with openai.OpenAI(base_url=trainer.url, api_key=key) as leaver:
        job = trainer.create(trainer.upload(rows(), leaver), leaver, steps=5000, epsilon=1.0)
    headers = {"authorization": f"Bearer {key}"}
    url = f"{trainer.url}/fine_tuning/jobs/{job.id}/events?stream=true"
    with httpx.stream("GET", url, headers=headers, timeout=60) as response:
        lines = (line for line in response.iter_lines() if line)
        next(lines)
        trainer.services.tenants.forget("leaver")
        *_, last = lines
    assert json.loads(last.removeprefix("data: "))["error"]["type"] == "invalid_request_error"


def test_a_model_that_a_provider_tuned_is_the_providers(trainer: Running) -> None:
    assert trainer.acme.models.retrieve(ALIAS).owned_by == "openai"
    for call in (
        lambda: trainer.acme.chat.completions.create(
            model=ALIAS, messages=[{"role": "user", "content": "x"}]
        ),
        lambda: trainer.acme.responses.create(model=ALIAS, input="x"),
    ):
        with pytest.raises(openai.InternalServerError) as caught:
            call()
        assert caught.value.code == "upstream_unreachable"
    with pytest.raises(openai.BadRequestError, match="fine-tuned"):
        trainer.acme.models.delete(ALIAS)
