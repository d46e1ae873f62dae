"""The corpora's readers, and the small study with tiny models on invented files."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ppft_tiny import WordEncoder

from learning.ppft import artefact, dataset
from learning.ppft.corpora import NAMES, CorpusError, read
from learning.ppft.small import FURTHER, Cell, Study, run
from privacy.ppft.tasks import SPECS, Task


def write(path: Path, lines: list[Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    with gzip.open(path, "wt", encoding="utf-8") as handle:
        handle.write(text)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file of every corpus, in its own format."""
    folder = tmp_path_factory.mktemp("data")
    sentences = [f"the film is {'very good' if i % 2 else 'bad'} {i}\t{i % 2}" for i in range(4100)]
    for part in ("train", "test"):
        write(folder / "sst2" / f"{part}.tsv.gz", ["sentence\tlabel", *sentences])
    write(
        folder / "ag_news" / "extra_dev_from_train.tsv.gz",
        ["sentence\tlabel", 'a "rain\tSci/Tech', *["sun and rain\tWorld"] * 3100, "x\tNothing"],
    )
    story = {"label": 3, "title": "Rain", "description": "very cold"}
    write(folder / "ag_news" / "test.jsonl.gz", [story] * 40)
    patient = {
        "question_init": "A 31-year-old male has a cough",
        "options": ["flu", "cold", "fever"],
        "correct_answer": "cold",
    }
    double = {**patient, "options": ["flu", "flu"], "correct_answer": "flu"}
    crime = {
        "question_init": "what is it",
        "options": {"A": "fraud", "B": "arson"},
        "answer": "arson",
    }
    for part in ("dev", "test"):
        for name in ("DDXPlus", "NLICE"):
            write(folder / "privacyrestore" / f"Pri-{name}.{part}.jsonl.gz", [patient, double] * 20)
        write(folder / "privacyrestore" / f"Pri-SLJA.{part}.jsonl.gz", [crime] * 10)
    item = {"question": "what", "choices": ["a b", "c d", "e f", "g h"], "answer": "D"}
    for part in (
        "professional_law", "professional_medicine", "clinical_knowledge", "jurisprudence",
        "college_medicine",
    ):  # fmt: skip
        write(folder / "mmlu_law_med" / f"{part}_test.jsonl.gz", [item] * 20)
    question = {"question": "what is it", "is_impossible": False, "answers": ["rain", "the rain"]}
    hard = {**question, "is_impossible": True, "answers": []}
    paragraph = {"title": "t", "context": "it is rain", "qas": [question, hard]}
    write(folder / "squad2" / "dev.jsonl.gz", [paragraph] * 20)
    paper = {"CONTEXTS": ["it is", "rain"], "QUESTION": "is it", "final_decision": "yes"}
    write(folder / "pubmedqa" / "labeled.jsonl.gz", [paper] * 20)
    asked = {"question": "What are the treatments for Flu ?", "answer": "sun"}
    write(folder / "medquad" / "sample.jsonl.gz", [asked] * 19 + [{**asked, "question": "Flu ?"}])
    return folder


EXPECTED = {
    "sst2": (Task.SENTIMENT, "negative"),
    "ag_news": (Task.TOPIC, "Technology"),
    "pri_ddx": (Task.CHOICE, "cold"),
    "pri_nlice": (Task.CHOICE, "cold"),
    "pri_slja": (Task.CHOICE, "arson"),
    "mmlu": (Task.CHOICE, "g h"),
    "squad2": (Task.EXTRACT, "rain"),
    "pubmedqa": (Task.VERDICT, "yes"),
    "medquad": (Task.ANSWER, "sun"),
    "medquad_intent": (Task.INTENT, "treatment"),
}


@pytest.mark.parametrize("name", NAMES)
def test_every_corpus_becomes_records(data: Path, name: str) -> None:
    for split in ("train", "eval"):
        records = list(read(name, data, split))  # type: ignore[arg-type]
        assert records, split
        assert (records[0].task, records[0].answer) == EXPECTED[name]
        for record in records:
            labels = record.candidates or SPECS[record.task].labels
            assert record.answer and (not labels or record.answer in labels)


def test_held_out_items_are_not_trained_on(data: Path) -> None:
    sizes = [len(list(read("mmlu", data, split))) for split in ("train", "eval")]  # type: ignore[arg-type]
    assert sizes == [90, 10]
    assert (
        len(list(read("pri_ddx", data, "train"))) == 20
    )  # items with an option twice are left out
    assert len(list(read("medquad_intent", data, "eval"))) == 1


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"train\.tsv\.gz is missing"):
        list(read("sst2", tmp_path, "train"))
    with pytest.raises(CorpusError, match="known are sst2"):
        list(read("nope", tmp_path, "train"))


def test_the_study_goes_on_where_it_stopped(data: Path, tmp_path: Path, decoder: Path) -> None:
    said: list[str] = []
    study = Study(tmp_path, data, WordEncoder(), decoder, steps=(2, 1), held_out=6, share=0.004)
    cells = (
        Cell(4),
        Cell(4, 75.0),
        Cell(8, 150.0, "gaussian"),
        Cell(4, kind="text"),
        Cell(4, kind="unadapted"),
        Cell(4, kind="further"),
    )
    late = Study(tmp_path, data, WordEncoder(), decoder, 0.0, (2, 1), 6, 0.004)
    assert not run(late, cells, said.append) and "budget" in said[-1]
    assert run(study, cells[:2], said.append)
    first = json.loads((tmp_path / "results.json").read_text())
    assert set(first) == {"k4-stage1", "k4-clean", "k4-laplace-75"}
    for prefix in ("own", "shuffled", "none"):
        assert set(first["k4-laplace-75"][prefix]) == {"sst2", "ag_news", "pri_ddx"}
    assert first["k4-laplace-75"]["epsilon_per_record"] == 150.0 * first["k4-laplace-75"]["slots"]
    assert first["k4-clean"]["bytes"] < 8 * 2**20
    rows = dataset.load(tmp_path / "data" / "k4-laplace-75").rows
    assert run(study, cells, said.append)
    then = json.loads((tmp_path / "results.json").read_text())
    assert {name: then[name] for name in first} == first
    assert set(then) - set(first) == {
        "k8-stage1",
        "k8-gaussian-150",
        "text",
        "unadapted",
        "further",
    }
    assert set(then["unadapted"]) == {"300", "150", "75", "30"}
    assert set(then["unadapted"]["75"]) == {"sst2", "ag_news", "pri_ddx"}
    assert set(then["further"]["shuffled"]) == set(FURTHER) == set(then["further"]["judged"])
    assert "text" in then["text"] and "own" not in then["text"]
    again = dataset.load(tmp_path / "data" / "k4-laplace-75").rows
    assert all(np.array_equal(a, b) for a, b in zip(rows, again, strict=True))
    card = artefact.read_card(tmp_path / "models" / "k8-gaussian-150")
    assert (card.stage, card.mechanism, card.epsilon, card.steps) == (2, "gaussian", 150.0, 3)
