"""Damaged or missing weight files are refused with a message that says what to do."""

import json
import shutil
from pathlib import Path

import pytest

from privacy.detection.ner.tagger import NerTagger
from privacy.detection.ner.weights import (
    MANIFEST_FILE,
    MODEL_FILE,
    SHIPPED,
    TOKENIZER_FILE,
    Weights,
    WeightsError,
    read_weights,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED, tmp_path / "weights"))


def test_shipped_weights_are_whole() -> None:
    weights = read_weights()
    assert len(weights.labels) == 13
    assert weights.version


@pytest.mark.parametrize("name", [MODEL_FILE, TOKENIZER_FILE])
def test_one_changed_byte_is_noticed(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(WeightsError, match=f"{name} is damaged.*Reinstall"):
        NerTagger.load(folder)


@pytest.mark.parametrize("name", [MODEL_FILE, TOKENIZER_FILE])
def test_a_truncated_file_is_noticed(folder: Path, name: str) -> None:
    (folder / name).write_bytes((folder / name).read_bytes()[:-1])
    with pytest.raises(WeightsError, match="is damaged"):
        NerTagger.load(folder)


@pytest.mark.parametrize("name", [MODEL_FILE, TOKENIZER_FILE, MANIFEST_FILE])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(WeightsError, match=f"{name}.* is missing"):
        NerTagger.load(folder)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"format": 1}'])
def test_a_damaged_manifest_is_noticed(folder: Path, content: str) -> None:
    (folder / MANIFEST_FILE).write_text(content, encoding="utf-8")
    with pytest.raises(WeightsError, match="is damaged"):
        read_weights(folder)


def test_another_format_is_refused(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST_FILE).read_text(encoding="utf-8"))
    manifest["format"] = 99
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(WeightsError, match="format 99"):
        read_weights(folder)


def test_a_graph_that_the_runtime_cannot_read_is_refused() -> None:
    good = read_weights()
    with pytest.raises(WeightsError, match="cannot be loaded"):
        NerTagger(Weights(b"no graph", good.tokenizer, good.labels, "x", 0.0))
