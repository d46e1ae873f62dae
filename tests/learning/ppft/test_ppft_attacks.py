"""Attacks find what is there to find, and no more."""

import gzip
import json
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from ppft_tiny import WordEncoder

from learning.ppft.attacks.measures import read_facts, recall_at_true_count, rouge_l
from learning.ppft.attacks.patients import read_patients
from learning.ppft.attacks.reconstruction import reconstruct
from learning.ppft.attacks.report import AttackStudy, run
from learning.ppft.attacks.rows import infer_attributes, retrieve
from learning.ppft.attacks.words import WordNoise
from learning.ppft.corpora import CorpusError
from privacy.ppft.noise import Noise
from privacy.ppft.rows import obfuscate, unit
from privacy.randomness import SeededRandomness

FACTS = ("cough", "fever", "rain", "dull", "poor", "flu")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data collection of invented patients and sentences."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "privacyrestore").mkdir()
    (folder / "sst2").mkdir()
    generator = np.random.default_rng(0)
    for part, size in (("test", 160), ("dev", 40)):
        lines = []
        for _ in range(size):
            sex, age = str(generator.choice(["F", "M"])), int(generator.integers(5, 90))
            symptoms = [str(s) for s in generator.choice(FACTS, 2, replace=False)]
            word = "female" if sex == "F" else "male"
            text = f"A {age}-year-old {word} has {symptoms[0]} and {symptoms[1]} and a cold"
            item = {"age": age, "sex": sex, "question_init": text, "symptoms": symptoms}
            lines.append(json.dumps({**item, "antecedents": ["cold"]}) + "\n")
        with gzip.open(folder / "privacyrestore" / f"Pri-DDXPlus.{part}.jsonl.gz", "wt") as handle:
            handle.writelines(lines)
    with gzip.open(folder / "sst2" / "test.tsv.gz", "wt") as handle:
        handle.write("sentence\tlabel\n")
        for number in range(60):
            handle.write(f"film {number} is {'good' if number % 2 else 'bad'}\t{number % 2}\n")
    return folder


def test_rouge_l_is_the_longest_common_subsequence() -> None:
    assert rouge_l("the cat sat", "The cat sat!") == 1.0
    assert rouge_l("police killed the gunman", "police kill the gunman") == pytest.approx(0.75)
    assert rouge_l("the gunman kill police", "police kill the gunman") == pytest.approx(0.5)
    assert rouge_l("", "x") == 0.0 and rouge_l("a", "b") == 0.0


def test_rouge_l_agrees_with_a_plain_recursion() -> None:
    from functools import cache

    def slow(a: list[str], b: list[str]) -> float:
        @cache
        def lcs(i: int, j: int) -> int:
            if i == len(a) or j == len(b):
                return 0
            if a[i] == b[j]:
                return 1 + lcs(i + 1, j + 1)
            return max(lcs(i + 1, j), lcs(i, j + 1))

        return 2 * lcs(0, 0) / (len(a) + len(b))

    generator = np.random.default_rng(0)
    for _ in range(50):
        a, b = (list(map(str, generator.integers(0, 4, generator.integers(1, 9)))) for _ in "ab")
        assert rouge_l(" ".join(a), " ".join(b)) == pytest.approx(slow(a, b))


def test_patients_are_read(data: Path) -> None:
    known = read_patients(data, "train")
    assert len(known) == 160 and known[0].antecedents == {"cold"} and len(known[0].facts) >= 2
    assert {p.age for p in known} == {0, 1, 2, 3}
    with pytest.raises(CorpusError, match="--data"):
        read_patients(data / "nowhere", "train")


def test_a_reader_of_plain_text_learns_all_and_of_nothing_nothing(data: Path) -> None:
    people = read_patients(data, "eval")
    assert set(read_facts([p.text for p in people], people).values()) == {1.0}
    assert set(read_facts(["quite another thing"] * 40, people).values()) == {0.0}


def test_retrieval_finds_clean_rows_and_not_drowned_ones() -> None:
    generator = np.random.default_rng(0)
    clean = unit(generator.normal(size=(300, 64))).astype(np.float32)
    truth = np.arange(100)
    assert retrieve(clean[:100], truth, clean)["top1"] == 1.0
    tops = []
    for epsilon in (1000.0, 20.0, 1.0):
        noisy = obfuscate(clean[:100], 1, Noise("laplace", epsilon), SeededRandomness(1))
        tops.append(retrieve(noisy, truth, clean)["top1"])
    assert tops[0] == 1.0 > tops[1] > tops[2] and tops[2] < 0.1
    wrong = retrieve(clean[:100], np.roll(truth, 1), clean)
    assert wrong["top1"] < 0.1 and wrong["size"] == 300.0


def rows_of(people: Any, noise: Noise, seed: int) -> Any:
    source = SeededRandomness(seed)
    states = WordEncoder().encode([p.text for p in people])
    return [obfuscate(s.states, 1, noise, source) for s in states]


def test_attributes_are_inferred_from_clean_rows_and_not_from_drowned_ones(data: Path) -> None:
    known, victims = (read_patients(data, split) for split in ("train", "eval"))
    clean = infer_attributes(
        known, rows_of(known, Noise.of(None), 0), victims, rows_of(victims, Noise.of(None), 1)
    )
    assert clean["sex_accuracy"] > 0.9 > clean["sex_guess"] and clean["symptoms_recall"] > 0.85
    assert clean["antecedents_recall"] == 1.0 == clean["antecedents_guess"]
    noise = Noise("laplace", 0.5)
    drowned = infer_attributes(known, rows_of(known, noise, 2), victims, rows_of(victims, noise, 3))
    assert drowned["sex_accuracy"] < 0.8
    assert drowned["symptoms_recall"] < 0.6


def test_texts_are_put_together_from_known_windows(data: Path) -> None:
    known, victims = (read_patients(data, split) for split in ("train", "eval"))
    words = [word for p in known for word in p.text.split()]
    gallery = np.concatenate(rows_of(known, Noise.of(None), 0))
    read = {}
    for epsilon in (None, 0.5):
        rows = rows_of(victims, Noise.of(epsilon), 1)
        read[epsilon] = read_facts(reconstruct(rows, gallery, words), victims)
    assert read[None]["symptom_recall"] == 1.0 and read[None]["sex_accuracy"] == 1.0
    assert read[None]["rouge_l"] > 0.9 > 0.5 > read[0.5]["rouge_l"]


def test_recall_counts_as_many_as_are_true() -> None:
    scores = np.array([[0.9, 0.1, 0.8], [0.1, 0.2, 0.3]])
    truth = np.array([[True, True, False], [False, False, True]])
    assert recall_at_true_count(scores, truth) == pytest.approx(2 / 3)


def test_word_noise_keeps_words_at_a_high_epsilon_and_loses_them_at_a_low_one() -> None:
    generator = np.random.default_rng(0)
    words = [*FACTS, *(f"w{i}" for i in range(200))]
    noise = WordNoise(
        words, generator.normal(size=(206, 20)).astype(np.float32), SeededRandomness(0)
    )
    text = "cough , fever , rain ."
    assert noise.sanitise("Cough, fever, rain.", 1e4) == text
    kept = [
        sum(
            a == b
            for a, b in zip(noise.sanitise("cough " * 50, e).split(), ["cough"] * 50, strict=True)
        )
        for e in (100.0, 3.0, 0.1)
    ]
    assert kept[0] == 50 > kept[1] > kept[2]
    assert noise.sanitise("unheard", 0.5) in words


def test_a_report_is_written_and_continued(data: Path, tmp_path: Path, decoder: Path) -> None:
    out = tmp_path / "attacks.json"
    said: list[str] = []
    sanitisers = (("upper", str.upper), ("gone", lambda text: f"x{crc32(text.encode()) % 97}"))
    study = AttackStudy(
        out, data, WordEncoder(), decoder, sanitisers=sanitisers, steps=1, victims=2
    )
    run(study, said.append)
    found = json.loads(out.read_text())
    assert len(found) == len(said)
    assert (
        found["k4-clean"]["attributes"]["sex_accuracy"] >= found["k4-30"]["attributes"]["sex_guess"]
    )
    assert found["sst2-k4-clean"]["retrieval"]["top1"] == 1.0
    assert found["attributes-text-gone"]["sex_accuracy"] < 0.8
    assert found["attributes-text-upper"]["sex_accuracy"] > 0.9
    assert found["text-upper"]["rouge_l"] == 1.0 and found["text-gone"]["rouge_l"] == 0.0
    assert {"inversion-k4-clean-on-75", "inversion-k16-75-on-75"} < set(found)
    assert set(found["inversion-k8-75-on-75"]) == set(found["text-plain"])
    assert found["reconstruction-k4-clean"]["rouge_l"] > found["reconstruction-k16-30"]["rouge_l"]
    assert 0 < found["text-another"]["symptom_recall"] < 1
    run(study, said.append)
    assert len(said) == len(found)  # nothing was done twice
