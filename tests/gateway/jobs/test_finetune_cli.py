"""`penname finetune` on a folder of its own, with a real worker."""

import json
from pathlib import Path
from typing import Any

import pytest
from job_process import settings_for
from jobs_gateway import TINY, rows
from rich.progress import Progress
from typer.testing import CliRunner

from gateway.bootstrap import build_services
from gateway.cli.console import CommandError, load_settings, parse_settings
from gateway.cli.main import app


@pytest.fixture
def folder(tmp_path: Path, models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("MODELS_DIR", "JOB_LEASE_SECONDS", "TRAINING_EPSILON", "TRAINING_DELTA"):
        value = getattr(settings_for(tmp_path, models), name.lower())
        monkeypatch.setenv(f"PENNAME_{name}", str(value))
    monkeypatch.setenv("PENNAME_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "train.jsonl").write_bytes(rows())
    (tmp_path / "public.jsonl").write_bytes(rows(10, "v"))
    return tmp_path


def penname(*words: str) -> str:
    result = CliRunner().invoke(app, ["finetune", *words], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_train_list_plot_and_cancel(folder: Path) -> None:
    train, public = str(folder / "train.jsonl"), str(folder / "public.jsonl")
    words = ("create", train, "--model", TINY, "--epsilon", "2", "--set", "steps=4")
    made = json.loads(penname(*words, "--validation", public, "--suffix", "cli", "--json"))
    assert made["status"] == "succeeded" and made["fine_tuned_model"].startswith(
        f"ft:{TINY}:default:cli:"
    )
    assert 0 < made["penname"]["epsilon_spent"] <= 2.0
    pictures = {path.name for path in (folder / "data/jobs" / made["id"]).glob("*.png")}
    assert pictures == {"epsilon.png", "metrics.png"}
    waiting = json.loads(penname(*words, "--detach", "--json"))
    assert waiting["status"] == "queued"
    assert [job["id"] for job in json.loads(penname("list", "--json"))] == [
        waiting["id"],
        made["id"],
    ]
    assert "cancelled" in penname("cancel", waiting["id"])
    assert "succeeded" in penname("list")
    penname("plot", made["id"])
    assert made["fine_tuned_model"] in penname("watch", made["id"])
    penname("save", made["id"], "--out", str(folder / "result"))
    assert {path.name for path in (folder / "result").iterdir()} == {
        "delta.safetensors",
        "README.md",
    }
    with pytest.raises(CommandError, match="there already"):
        penname("save", made["id"], "--out", str(folder / "result"))
    with pytest.raises(CommandError, match="is cancelled and has no result files"):
        penname("save", waiting["id"], "--out", str(folder / "none"))
    with pytest.raises(CommandError, match="succeeded cannot be paused"):
        penname("pause", made["id"])
    with pytest.raises(CommandError, match="no step that could be drawn"):
        penname("plot", waiting["id"])
    with pytest.raises(CommandError, match="no such fine-tuning job"):
        penname("watch", "ftjob-0")


def test_progress_shows_epsilon_time_left_and_the_public_loss(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    update = Progress.update

    def recording(bar: Progress, *args: Any, **fields: Any) -> None:
        shown.append(fields.get("told", ""))
        update(bar, *args, **fields)

    monkeypatch.setattr(Progress, "update", recording)
    words = ("--model", TINY, "--epsilon", "2", "--set", "steps=6", "--set", "checkpoint_every=2")
    penname(
        "create", str(folder / "train.jsonl"), *words, "--validation", str(folder / "public.jsonl")
    )
    told = [text for text in shown if text]
    spent = [float(text.split()[1]) for text in told]
    assert spent == sorted(spent) and 0 < spent[-1] <= 2.0 and " of 1.99" in told[0]
    assert any("s left" in text for text in told) and "s left" not in told[-1]
    # Beside status, bar and steps: a terminal of 80 columns shows all of it.
    assert max(len(line) for text in told for line in text.splitlines()) < 50
    assert "valid_loss" not in told[0]
    first = next(i for i, text in enumerate(told) if "valid_loss" in text)
    assert all("valid_accuracy" in text for text in told[first:])


def test_faults_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bad.jsonl").write_text("nope\n")
    with pytest.raises(CommandError, match="line 1: is not JSON"):
        penname("create", str(folder / "bad.jsonl"), "--model", TINY)
    with pytest.raises(CommandError, match="dp_bitfit.epsilon"):
        penname("create", str(folder / "train.jsonl"), "--model", TINY, "--epsilon", "-1")
    with pytest.raises(CommandError, match="dp_bitfit.rate: there is no such setting; .*n_epochs"):
        penname("create", str(folder / "train.jsonl"), "--model", TINY, "--set", "rate=1")
    with monkeypatch.context() as patch:
        patch.setattr("learning.methods.dp_bitfit.find_spec", lambda _: None)
        with pytest.raises(CommandError, match="dp-accounting, which is not installed. Run: pip"):
            penname("create", str(folder / "train.jsonl"), "--model", TINY)
    services = build_services(load_settings())
    try:
        assert services.files.list("default") == []  # what was refused is not kept
    finally:
        services.workers.shutdown()
        services.vectors.close()
        services.db.close()


def test_settings_are_json_or_text() -> None:
    assert parse_settings(["a=1", "b=x", 'c=["y"]', "d=true"]) == {
        "a": 1,
        "b": "x",
        "c": ["y"],
        "d": True,
    }
    for pair in ("a", "=1", "a="):
        with pytest.raises(CommandError, match="NAME=VALUE"):
            parse_settings([pair])
