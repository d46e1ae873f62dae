"""Datasets, both stages, resuming, artefacts: from exported files alone."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ppft_tiny import DIMENSIONS, WordEncoder

from learning.ppft import artefact, dataset
from learning.ppft.align import align_clean, align_noisy
from learning.ppft.decoder import load_decoder
from learning.ppft.evaluate import accuracy, choose, given_rows, score, token_f1
from learning.ppft.export import Encoded, Limits, encode, export, export_public
from learning.ppft.model import Lora, PpftModel
from learning.ppft.train import Plan, schedule, train, write_events
from privacy.ppft.noise import Noise
from privacy.ppft.prompt import Record
from privacy.ppft.tasks import Task
from privacy.randomness import SeededRandomness

GOOD, BAD = ("good", "great", "fine", "warm"), ("bad", "poor", "dull", "cold")


def sentiments(n: int, seed: int = 0) -> list[Record]:
    generator = np.random.default_rng(seed)
    found = []
    for number in range(n):
        words = GOOD if number % 2 else BAD
        text = f"the film is {generator.choice(words)} and very {generator.choice(words)}"
        found.append(Record(Task.SENTIMENT, text, answer="positive" if number % 2 else "negative"))
    return found


@pytest.fixture(scope="module")
def encoded() -> Encoded:
    return encode(sentiments(64), WordEncoder(), 2, Limits())


def new_model(decoder: Path) -> PpftModel:
    torch.manual_seed(3)
    return PpftModel.create(load_decoder(decoder), DIMENSIONS, Lora(r=4))


def quiet(event: dict[str, Any]) -> None:
    """Progress that nobody reads."""


def test_export_holds_rows_and_answers_and_no_text(encoded: Encoded, tmp_path: Path) -> None:
    noise = Noise("laplace", 30.0)
    data, costs = export(encoded, WordEncoder(), 2, noise, ("films",), SeededRandomness(0))
    dataset.save(data, tmp_path / "d")
    files = sorted(path.name for path in (tmp_path / "d").iterdir())
    assert files == ["answers.jsonl", "manifest.json", "rows.safetensors"]
    everything = b"".join(path.read_bytes() for path in (tmp_path / "d").iterdir())
    for word in (*GOOD, *BAD, "film"):
        assert word.encode() not in everything.replace(b"films", b"")
    assert [c.epsilon for c in costs] == [60.0 * 4] * 64  # seven words, k = 2: four rows
    read = dataset.load(tmp_path / "d")
    assert read.meta == data.meta and read.answers == data.answers and read.tasks == data.tasks
    assert all(np.allclose(a, b, atol=1e-3) for a, b in zip(read.rows, data.rows, strict=True))
    assert not any(np.allclose(a, b) for a, b in zip(data.rows, data.rows[1:], strict=False))


def test_public_data_keeps_the_words_under_each_row(encoded: Encoded, tmp_path: Path) -> None:
    data = export_public(encoded, WordEncoder(), 2)
    assert data.windows[0][:2] == ["the film", encoded.texts[0][9:].rsplit(" ", 3)[0]]
    assert [len(w) for w in data.windows] == [len(r) for r in data.rows]
    dataset.save(data, tmp_path / "d")
    assert dataset.load(tmp_path / "d").windows == data.windows
    with pytest.raises(dataset.DatasetError, match="only public"):
        dataset.save(replace(data, meta=replace(data.meta, public=False)), tmp_path / "e")
    assert not (tmp_path / "e").exists()


def test_the_length_filter_leaves_out_and_never_cuts() -> None:
    records = [
        Record(Task.ANSWER, question="what is it", answer="rain"),
        Record(Task.ANSWER, question="what " * 9, answer="rain"),
        Record(Task.ANSWER, question="what is it", answer="rain" * 90),
        Record(Task.ANSWER, question="what is it"),
        Record(Task.ANSWER, answer="rain"),
    ]
    kept = encode(records, WordEncoder(), 2, Limits(slots=4, answer=50))
    assert kept.records == records[:1]


@pytest.mark.parametrize("name", ["rows.safetensors", "answers.jsonl"])
def test_a_damaged_dataset_is_noticed(encoded: Encoded, tmp_path: Path, name: str) -> None:
    data, _ = export(encoded, WordEncoder(), 2, Noise(), random=SeededRandomness(0))
    dataset.save(data, tmp_path / "d")
    body = bytearray((tmp_path / "d" / name).read_bytes())
    body[-3] ^= 1
    (tmp_path / "d" / name).write_bytes(body)
    with pytest.raises(dataset.DatasetError, match="damaged"):
        dataset.load(tmp_path / "d")
    with pytest.raises(dataset.DatasetError, match=r"no readable manifest"):
        dataset.load(tmp_path / "nothing")


def test_datasets_of_different_kinds_do_not_mix(encoded: Encoded) -> None:
    one, _ = export(encoded, WordEncoder(), 2, Noise("laplace", 30.0), ("a",))
    two, _ = export(encoded, WordEncoder(), 2, Noise("laplace", 30.0), ("b",))
    other, _ = export(encoded, WordEncoder(), 2, Noise("laplace", 31.0))
    both = dataset.merge([one, two])
    assert len(both) == 128 and both.meta.corpora == ("a", "b") and not both.meta.public
    with pytest.raises(dataset.DatasetError, match="do not mix"):
        dataset.merge([one, other])


def test_both_stages_teach_the_decoder_to_use_its_prefix(
    encoded: Encoded, decoder: Path, tmp_path: Path
) -> None:
    public = export_public(encoded, WordEncoder(), 2, ("films",))
    model = new_model(decoder)
    assert 0.0 < align_clean(model, public) <= 1.0
    plan = Plan(steps=200, batch=16, warm=10, lr=5e-3, lr_projection=1e-2)
    assert train(model, public.examples(), plan, report=quiet) == 200
    held = encode(sentiments(24, seed=9), WordEncoder(), 2, Limits())
    clean = export_public(held, WordEncoder(), 2).rows
    own = accuracy(model, held.records, clean)
    assert own >= 0.9
    # A decoder that reads another record's rows gives that record's answer.
    numbered = [np.full((1, 1), i, np.float32) for i in range(len(held.records))]
    others = [int(row[0, 0]) for row in given_rows(held.records, numbered, "shuffled")]
    same = np.mean(
        [r.answer == held.records[i].answer for r, i in zip(held.records, others, strict=True)]
    )
    assert accuracy(model, held.records, clean, "shuffled") == pytest.approx(same, abs=0.1)
    assert same < 0.7
    assert accuracy(model, held.records, clean, "none") == pytest.approx(0.5)

    noise = Noise("laplace", 40.0)
    data, _ = export(encoded, WordEncoder(), 2, noise, ("films",), SeededRandomness(1))
    before = model.projection.weight.detach().clone()
    align_noisy(model, public.rows, noise, SeededRandomness(2))
    assert not torch.allclose(before, model.projection.weight)
    train(model, data.examples(), replace(plan, steps=80), report=quiet)
    noisy, _ = export(held, WordEncoder(), 2, noise, random=SeededRandomness(3))
    assert accuracy(model, held.records, noisy.rows) >= 0.8

    card = artefact.Card("words", DIMENSIONS, 2, model.decoder.name, lora=Lora(r=4)).of(data.meta)
    artefact.save(model, card, tmp_path / "m")
    again, read = artefact.load(tmp_path / "m", load_decoder(decoder))
    assert read == card and read.epsilon == 40.0
    assert accuracy(again, held.records, noisy.rows) == accuracy(model, held.records, noisy.rows)


def test_an_interrupted_training_goes_on_as_if_it_had_not_been(
    encoded: Encoded, decoder: Path, tmp_path: Path
) -> None:
    examples = export_public(encoded, WordEncoder(), 2).examples()
    plan = Plan(steps=12, batch=8, warm=2, every=4)
    whole = new_model(decoder)
    train(whole, examples, plan, report=quiet)

    class Interrupted(Exception):
        pass

    def stop(event: dict[str, Any]) -> None:
        if event == {"event": "checkpoint", "step": 8}:
            raise Interrupted

    point = tmp_path / "c"
    with pytest.raises(Interrupted):
        train(new_model(decoder), examples, plan, point, stop)
    events: list[dict[str, Any]] = []
    resumed = new_model(decoder)
    assert train(resumed, examples, plan, point, events.append) == 12
    assert events[0] == {"event": "resumed", "step": 8}
    for name, parameter in whole.trainable().items():
        assert torch.allclose(parameter, resumed.trainable()[name], atol=1e-7), name
    point.write_bytes(point.read_bytes()[:500])  # cut off
    assert train(new_model(decoder), examples, plan, point, events.append) == 12
    assert {"event": "damaged", "step": 0} in events


def test_the_clock_ends_a_stage_early(encoded: Encoded, decoder: Path, tmp_path: Path) -> None:
    examples = export_public(encoded, WordEncoder(), 2).examples()
    log = tmp_path / "events.jsonl"
    done = train(
        new_model(decoder),
        examples,
        Plan(steps=10_000, batch=4, minutes=1e-6),
        tmp_path / "c",
        write_events(log),
    )
    assert done < 10_000 and (tmp_path / "c").exists()
    kinds = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert kinds[-2:] == ["checkpoint", "done"]


def test_the_schedule_repeats_and_uses_every_example() -> None:
    tasks = [Task.SENTIMENT] * 10 + [Task.TOPIC] * 30
    plan = Plan(steps=40, batch=5, seed=7)
    first, second = (list(schedule(tasks, plan)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert {int(i) for batch in first for i in batch} == set(range(40))
    for batch in first:
        assert len({tasks[i] for i in batch}) == 1 and len(set(batch.tolist())) == 5


def test_a_model_of_another_decoder_or_damaged_is_refused(decoder: Path, tmp_path: Path) -> None:
    model = new_model(decoder)
    card = artefact.Card("words", DIMENSIONS, 2, model.decoder.name, lora=Lora(r=4))
    artefact.save(model, card, tmp_path / "m")
    with pytest.raises(artefact.ArtefactError, match="belongs to"):
        artefact.load(tmp_path / "m", replace(model.decoder, name="other"))
    with pytest.raises(artefact.ArtefactError, match="columns, k = 2"):
        card.check(dataset.Meta("words", DIMENSIONS, 3))
    weights = tmp_path / "m" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
    with pytest.raises(artefact.ArtefactError, match="damaged"):
        artefact.read_card(tmp_path / "m")
    with pytest.raises(artefact.ArtefactError, match="no trained PPFT model"):
        artefact.read_card(tmp_path / "nothing")


def test_answers_are_read_as_the_nearest_candidate() -> None:
    record = Record(Task.CHOICE, options=("Cluster headache", "Atrial fibrillation"), answer="x")
    assert choose("cluster headaches", record.options) == "Cluster headache"
    assert score(replace(record, answer="Cluster headache"), "CLUSTER headach") == 1.0
    assert score(replace(record, answer="Cluster headache"), "atrial") == 0.0
    assert token_f1("The Norman dynasty.", "norman dynasty") == 1.0
    assert token_f1("Normandy in France", "France") == pytest.approx(0.5)
    assert token_f1("", "France") == 0.0
    extract = Record(Task.EXTRACT, answer="10th century", accepted=("the 10th", "10th century"))
    assert score(extract, "10th") == 1.0


def test_a_shuffled_prefix_is_of_the_same_task() -> None:
    records = [Record(Task.TOPIC), Record(Task.SENTIMENT), Record(Task.TOPIC), Record(Task.TOPIC)]
    rows = [np.full((1, 2), i, np.float32) for i in range(4)]
    given = [int(row[0, 0]) for row in given_rows(records, rows, "shuffled")]
    assert given[1] == 1 and sorted(given) == [0, 1, 2, 3]
    assert all(given[i] != i for i in (0, 2, 3))
    assert given == [int(row[0, 0]) for row in given_rows(records, rows, "shuffled")]
    assert all(len(row) == 0 for row in given_rows(records, rows, "none"))


_WORKER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
import torch
torch.set_num_threads(1)
from ppft_tiny import DIMENSIONS
from learning.ppft import artefact, dataset
from learning.ppft.decoder import load_decoder
from learning.ppft.model import Lora, PpftModel
from learning.ppft.train import Plan, train
torch.manual_seed(3)
data = dataset.load(Path(sys.argv[1]))
model = PpftModel.create(load_decoder(sys.argv[2]), DIMENSIONS, Lora(r=4))
train(model, data.examples(), Plan(steps=4, batch=8, warm=1), report=lambda event: None)
rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
card = artefact.Card("words", DIMENSIONS, 2, model.decoder.name, lora=Lora(r=4))
artefact.save(model, card, Path(sys.argv[4] + str(rank)))
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
"""


@pytest.mark.slow
def test_two_processes_train_the_same_model_as_one(
    encoded: Encoded, decoder: Path, tmp_path: Path
) -> None:
    # Both answers have equally many tokens, so the mean of two means is the mean.
    dataset.save(export_public(encoded, WordEncoder(), 2), tmp_path / "data")
    (tmp_path / "worker.py").write_text(_WORKER)
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": str(here.parents[2]), "OMP_NUM_THREADS": "1"}
    arguments = [str(tmp_path / "data"), str(decoder), str(here)]

    def worker(out: str, **more: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, str(tmp_path / "worker.py"), *arguments, str(tmp_path / out)]
        return subprocess.Popen(command, env={**environment, **more})

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    started = [worker("one")] + [worker("two", RANK=str(rank), **group) for rank in (0, 1)]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    one, first, second = (
        artefact.load(tmp_path / name, load_decoder(decoder))[0].trainable()
        for name in ("one0", "two0", "two1")
    )
    for name, parameter in one.items():
        assert torch.equal(first[name], second[name])
        assert torch.allclose(parameter, first[name], atol=2e-4), name
