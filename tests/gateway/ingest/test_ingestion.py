"""From a stored file to searchable chunks, and every way that can fail."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from documents_app import Gateway, open_services

from gateway.ingest.pipeline import ingest_file, resume_ingestion
from gateway.services import Services
from privacy.types import Span
from store.documents import VectorStoreFile

TEXT = b"Mail Ilse at ilse.varga@lumenvale.example.com or call +44 1632 960472. " * 60


class Failing:
    """A detector that fails as a library might, quoting the text."""

    def detect(self, texts: Sequence[str]) -> list[list[Span]]:
        raise RuntimeError(f"cannot process {texts[0]}")


def attach(services: Services, name: str, content: bytes) -> tuple[str, str]:
    file = services.files.create("acme", name, "assistants", content)
    store = services.documents.create("acme", "s")
    services.documents.attach("acme", store.id, file.id)
    return store.id, file.id


def ingest(services: Services, name: str, content: bytes) -> VectorStoreFile:
    store_id, file_id = attach(services, name, content)
    ingest_file("acme", file_id, store_id, services)
    return services.documents.file("acme", store_id, file_id)


def test_chunks_carry_spans_and_unit_vectors(gateway: Gateway) -> None:
    services = gateway.services
    row = ingest(services, "a.txt", TEXT)
    assert (row.status, row.error_code) == ("completed", None)
    chunks = services.documents.chunks_of("acme", row.vector_store_id, embeddings=True)
    assert len(chunks) > 3
    for chunk in chunks:
        found = [chunk.text[s.start : s.end] for s in chunk.spans if s.type == "EMAIL"]
        assert found == ["ilse.varga@lumenvale.example.com"] * chunk.text.count("@")
        assert abs(float((chunk.embedding**2).sum()) - 1.0) < 1e-5
    (hit, _score), *_ = services.vectors.search(
        "acme", [row.vector_store_id], services.encoder.encode(["phone number of Ilse"])[0], 3
    )
    assert hit in {chunk.id for chunk in chunks}


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("secret-plan.pdf", b"%PDF-1.4 secret-content", "invalid_file"),
        ("secret-plan.docx", b"PK\x03\x04secret-content", "unsupported_file"),
        ("secret-plan.txt", b" ", "invalid_file"),
    ],
)
def test_bad_files_fail_with_a_code_and_without_content(
    gateway: Gateway, caplog: pytest.LogCaptureFixture, name: str, content: bytes, code: str
) -> None:
    with caplog.at_level(logging.DEBUG):
        row = ingest(gateway.services, name, content)
    assert (row.status, row.error_code) == ("failed", code)
    assert row.error_message
    for word in ("secret-content", "secret-plan"):
        assert word not in row.error_message and word not in caplog.text


def test_a_failure_inside_is_a_server_error_and_says_nothing(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.services.detector = Failing()  # type: ignore[assignment]
    with caplog.at_level(logging.DEBUG):
        row = ingest(gateway.services, "a.txt", TEXT)
    assert (row.status, row.error_code) == ("failed", "server_error")
    assert "RuntimeError" in caplog.text
    assert "ilse" not in caplog.text.casefold() and "ilse" not in str(row.error_message).casefold()


def test_cancelled_deleted_and_detached_files_leave_nothing(gateway: Gateway) -> None:
    services = gateway.services
    store_id, file_id = attach(services, "a.txt", TEXT)
    services.documents.cancel("acme", store_id, file_id)
    ingest_file("acme", file_id, store_id, services)
    assert services.documents.file("acme", store_id, file_id).status == "cancelled"
    services.documents.detach("acme", store_id, file_id)
    ingest_file("acme", file_id, store_id, services)
    services.files.delete("acme", file_id)
    ingest_file("acme", file_id, store_id, services)
    assert services.documents.chunks_of("acme", store_id) == []


def test_a_restart_finishes_what_was_in_progress(tmp_path: Path) -> None:
    with open_services(tmp_path) as services:
        services.tenants.create("acme")
        where = [attach(services, "a.txt", TEXT), attach(services, "b.pdf", b"%PDF-broken")]
    with open_services(tmp_path) as services:
        assert resume_ingestion(services) == 2
        services.ingestion.shutdown(wait=True)
        states = [services.documents.file("acme", store, file).status for store, file in where]
        assert states == ["completed", "failed"]
        assert resume_ingestion(services) == 0


def test_ingesting_twice_keeps_one_copy(gateway: Gateway) -> None:
    services = gateway.services
    row = ingest(services, "a.txt", TEXT)
    before = len(services.documents.chunks_of("acme", row.vector_store_id))
    services.documents.attach("acme", row.vector_store_id, row.file_id)
    ingest_file("acme", row.file_id, row.vector_store_id, services)
    assert len(services.documents.chunks_of("acme", row.vector_store_id)) == before
