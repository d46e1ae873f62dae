"""Parts of the method ppft that need no training."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from connectors.ppft import record_of
from connectors.token_encoder import token_encoder
from gateway.jobs.bases import PPFT_INTENT, LocalSite, base_names, base_path
from learning.group import GroupError, join
from learning.methods.base import NO_ROWS, Export, Facts, MethodError, Nowhere
from learning.methods.ppft import METHOD, records_of
from learning.ppft import artefact
from learning.rows import parse_rows
from privacy.ppft.accounting import cost, together
from privacy.ppft.noise import Noise
from privacy.ppft.prompt import render
from privacy.ppft.tasks import Task

TURNS = (
    b'{"messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"},'
    b' {"role": "assistant", "content": "yes?"}, {"role": "user", "content": "is it flu"},'
    b' {"role": "assistant", "content": "no"}]}'
)


def test_a_conversation_is_encoded_in_training_as_it_is_asked() -> None:
    rows = parse_rows(TURNS)
    (record,) = records_of(rows, Task.ANSWER)
    asked = record_of([*rows.rows[0]["messages"][:-1]], Task.ANSWER)
    assert render(record) == render(asked) == "be kind hello yes?\nis it flu"
    assert (record.answer, asked.answer) == ("no", "")


def test_lengths_are_those_of_the_states() -> None:
    texts = ["", "One word more, Oberhuber.", "fever " * 300]
    encoder = token_encoder()
    assert encoder.lengths(texts) == [len(item.states) for item in encoder.encode(texts)]


def test_releases_of_one_record_compose() -> None:
    laplace, gaussian = Noise("laplace", 10.0), Noise("gaussian", 10.0)
    assert together([]) == 0.0
    assert together([(3, 16, laplace), (2, 16, laplace)]) == 20.0 * 5
    assert together([(3, 16, gaussian)]) == pytest.approx(cost(3, 16, gaussian).epsilon)
    twice = together([(3, 16, gaussian)] * 2)
    assert twice == pytest.approx(cost(6, 16, gaussian).epsilon)
    assert together([(3, 16, gaussian), (1, 16, laplace)]) == pytest.approx(
        20.0 + cost(3, 16, gaussian).epsilon
    )


def test_the_shipped_model_is_a_base(tmp_path: Path) -> None:
    assert PPFT_INTENT in base_names(tmp_path)
    base = base_path(PPFT_INTENT, tmp_path)
    site = LocalSite(tmp_path)
    rows = parse_rows(b'{"text": "What causes gout ?", "label": "causes"}')
    plan = METHOD.plan({"task": "intent"}, Facts(1, (), 1e-6, base, rows, site))
    assert plan.shown["k"] == 4 and plan.shown["epsilon"] == 150.0
    # "what causes go ##ut ?": two rows of at most 300 each.
    assert plan.epsilon == 600.0 and plan.history[0]["dimensions"] == 384
    assert METHOD.reads(base) == "any"
    with pytest.raises(MethodError, match="not all-MiniLM-L6-v2@0"):
        site.encoder("all-MiniLM-L6-v2@0")
    for name in ("../x", "nothing"):
        with pytest.raises(MethodError, match="PENNAME_MODELS_DIR"):
            site.decoder(name)


def test_a_plan_needs_a_record(tmp_path: Path) -> None:
    base = base_path(PPFT_INTENT, tmp_path)
    facts = Facts(0, (), 1e-6, base, NO_ROWS, LocalSite(tmp_path))
    with pytest.raises(MethodError, match="leaves no record"):
        METHOD.plan({}, facts)
    with pytest.raises(MethodError, match="no encoder"):
        METHOD.plan({}, Facts(1, (), 1e-6, base, parse_rows(TURNS), Nowhere()))


def test_weights_without_a_card_are_no_package(tmp_path: Path) -> None:
    base = base_path(PPFT_INTENT, tmp_path)
    with pytest.raises(artefact.ArtefactError, match="no trained PPFT model"):
        artefact.card_within(base / artefact.WEIGHTS)
    (tmp_path / "noise").write_bytes(b"x" * 100)
    with pytest.raises(artefact.ArtefactError, match="no trained PPFT model"):
        artefact.card_within(tmp_path / "noise")


def test_every_process_needs_a_gpu_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(
        torch, "cuda", SimpleNamespace(is_available=lambda: True, device_count=lambda: 1)
    )
    with pytest.raises(GroupError, match="PENNAME_JOB_PROCESSES is 2 and 1 GPUs"):
        join(tmp_path, 0, 2)


def test_an_export_does_not_show_its_texts() -> None:
    export = Export(lambda _folder: None, Path(), (), [("Oberhuber", None)], "told")  # type: ignore[list-item]
    assert "Oberhuber" not in repr(export)
