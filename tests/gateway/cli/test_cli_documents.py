"""`penname ingest` and the demo's documents: again, interrupted, and faulty."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from documents_app import open_services

import gateway.cli.demo as demo
import gateway.cli.ingest as ingest
from gateway.services import Services

STATEMENTS = (
    "The treating doctor of Henrik Aldous is Dr. Amina Okonkwo",
    "The payroll office is run by Nadia Petrescu",
    "The travel desk is led by Séverine Blanchet",
)


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    with open_services(tmp_path / "data") as opened:
        opened.tenants.ensure("demo")
        yield opened


def quiet(_step: str, _share: float) -> None: ...


def interrupt_after(monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    real, seen = ingest.ingest_file, []

    def stopped(*arguments: Any) -> None:
        seen.append(arguments)
        if len(seen) > files:
            raise KeyboardInterrupt
        real(*arguments)

    monkeypatch.setattr(ingest, "ingest_file", stopped)


def test_an_interrupted_demo_ingests_again(services: Services, monkeypatch) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_after(patch, 4)
        demo.documents(services)
    store = demo.documents(services)
    assert [row.id for row in services.documents.list("demo")] == [store]
    files = services.documents.files("demo", store)
    assert {file.status for file in files} == {"completed"}
    names = {services.files.get("demo", file.file_id).filename for file in files}
    assert len(names) == len(files) == len(services.files.list("demo")) == 9
    assert not names & {"README.md", "make_pdf.py"}
    assert demo.documents(services) == store
    for question, statement in zip(demo.QUESTIONS, STATEMENTS, strict=True):
        vector = services.encoder.encode([question])[0]
        ((chunk_id, _),) = services.vectors.search("demo", [store], vector, 1)
        (chunk,) = services.documents.chunks("demo", [chunk_id])
        assert statement in chunk.text
        assert len(chunk.text) < 250


def test_the_same_content_is_ingested_once(services: Services, tmp_path: Path, monkeypatch) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("Ilse Varga signed.")
    two.write_text("Another text.")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_after(patch, 1)
        ingest.ingest_paths(services, "demo", "s", [one, two], quiet)
    for _ in range(2):
        store, failed = ingest.ingest_paths(services, "demo", "s", [one, two, one], quiet)
        assert not failed
        files = services.documents.files("demo", store)
        assert [file.status for file in files] == ["completed"] * 2
    assert len(services.files.list("demo")) == 2


def test_a_faulty_file_is_named_with_its_reason_and_detached(penname, tmp_path: Path) -> None:
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    code, out, err = penname("ingest", "bad.pdf", "--data-dir", "d")
    assert code == 2
    assert out.startswith("vs_")
    reason = next(line for line in err.splitlines() if "bad.pdf: " in line)
    assert len(reason.split("bad.pdf: ")[1]) > 10
    with open_services_of(tmp_path / "d") as services:
        store = services.documents.list("default")[0]
        assert services.documents.files("default", store.id) == []
        assert services.files.list("default") == []


def open_services_of(folder: Path) -> Any:
    from contextlib import closing

    from gateway.bootstrap import build_services
    from gateway.settings import Settings

    return closing(build_services(Settings(data_dir=folder)))
