"""The vector store API through the real SDK."""

import time
from typing import Any

import openai
import pytest
from documents_app import SAMPLES, Gateway

NOTES = {
    "basel.txt": "The Basel office is managed by Tobias van der Linden since 2021.",
    "graz.txt": "The Graz plant makes lenses and microscope stands for clinics.",
    "payroll.txt": "The payroll is run by Nadia Petrescu, extension 412.",
}


def upload(client: openai.OpenAI, name: str, text: str) -> str:
    return client.files.create(file=(name, text.encode()), purpose="assistants").id


@pytest.fixture
def filled(gateway: Gateway) -> tuple[Gateway, str, dict[str, str]]:
    """A gateway, a store of the three notes, and the file id of each."""
    store = gateway.acme.vector_stores.create(name="notes")
    files = {}
    for year, (name, text) in enumerate(NOTES.items(), start=2024):
        files[name] = upload(gateway.acme, name, text)
        made = gateway.acme.vector_stores.files.create_and_poll(
            files[name],
            vector_store_id=store.id,
            attributes={"place": name.split(".")[0], "year": year, "open": year == 2024},
        )
        assert made.status == "completed" and made.last_error is None
    return gateway, store.id, files


def test_create_with_files_and_follow_it(gateway: Gateway) -> None:
    ids = [upload(gateway.acme, name, text) for name, text in NOTES.items()]
    made = gateway.acme.vector_stores.create(
        name="notes",
        file_ids=ids,
        metadata={"team": "a"},
        expires_after={"anchor": "last_active_at", "days": 3},
    )
    assert made.file_counts.total == 3
    deadline = time.monotonic() + 60
    while (store := gateway.acme.vector_stores.retrieve(made.id)).status == "in_progress":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert store.status == "completed" and store.file_counts.completed == 3
    assert store.usage_bytes == sum(len(text) for text in NOTES.values())
    assert store.metadata == {"team": "a"} and store.expires_after is not None
    assert store.expires_at == (store.last_active_at or 0) + 3 * 86_400


def test_modify_keeps_what_is_not_named(gateway: Gateway) -> None:
    made = gateway.acme.vector_stores.create(name="a", metadata={"k": "v"})
    renamed = gateway.acme.vector_stores.update(made.id, name="b")
    assert (renamed.name, renamed.metadata) == ("b", {"k": "v"})
    cleared = gateway.acme.vector_stores.update(made.id, metadata=None)
    assert (cleared.name, cleared.metadata) == ("b", {})


def test_delete_store_keeps_files(filled: tuple[Gateway, str, dict[str, str]]) -> None:
    gateway, store, files = filled
    gone = gateway.acme.vector_stores.delete(store)
    assert gone.deleted
    with pytest.raises(openai.NotFoundError):
        gateway.acme.vector_stores.search(store, query="Basel")
    assert gateway.acme.files.retrieve(files["basel.txt"])


def test_paging_forwards_and_backwards(gateway: Gateway) -> None:
    ids = [gateway.acme.vector_stores.create(name=str(i)).id for i in range(5)]
    assert [s.id for s in gateway.acme.vector_stores.list(limit=2, order="asc")] == ids
    before = gateway.acme.vector_stores.list(limit=2, order="asc", before=ids[3])
    assert [s.id for s in before.data] == ids[1:3] and before.has_more
    with pytest.raises(openai.BadRequestError):
        gateway.acme.vector_stores.list(after="vs_unknown")
    with pytest.raises(openai.BadRequestError):
        gateway.acme.vector_stores.list(after=ids[0], before=ids[1])


def test_search_finds_by_meaning(filled: tuple[Gateway, str, dict[str, str]]) -> None:
    gateway, store, files = filled
    found = gateway.acme.vector_stores.search(store, query="Who pays the wages?", max_num_results=2)
    assert [hit.filename for hit in found.data][0] == "payroll.txt"
    assert len(found.data) == 2
    assert found.data[0].content[0].text == NOTES["payroll.txt"]
    assert found.data[0].attributes == {"place": "payroll", "year": 2026, "open": False}
    assert found.data[0].file_id == files["payroll.txt"]
    assert 1.0 >= found.data[0].score >= found.data[1].score >= 0.0


def test_search_page_shape_with_several_queries(
    filled: tuple[Gateway, str, dict[str, str]],
) -> None:
    gateway, store, _ = filled
    queries = ["head of the Basel office", "wages"]
    raw = gateway.http.post(
        f"/v1/vector_stores/{store}/search", headers=gateway.headers(), json={"query": queries}
    ).json()
    assert raw["object"] == "vector_store.search_results.page"
    assert raw["search_query"] == queries
    assert raw["has_more"] is False and raw["next_page"] is None
    assert {hit["filename"] for hit in raw["data"][:2]} == {"basel.txt", "payroll.txt"}
    assert len(raw["data"]) == 3  # each chunk once


def test_score_threshold(filled: tuple[Gateway, str, dict[str, str]]) -> None:
    gateway, store, _ = filled
    query = "Basel office manager"
    scores = [h.score for h in gateway.acme.vector_stores.search(store, query=query).data]
    cut = (scores[0] + scores[1]) / 2
    kept = gateway.acme.vector_stores.search(
        store, query=query, ranking_options={"score_threshold": cut}
    )
    assert [h.filename for h in kept.data] == ["basel.txt"]


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"type": "eq", "key": "place", "value": "graz"}, {"graz.txt"}),
        ({"type": "ne", "key": "place", "value": "graz"}, {"basel.txt", "payroll.txt"}),
        ({"type": "gt", "key": "year", "value": 2024}, {"graz.txt", "payroll.txt"}),
        ({"type": "gte", "key": "year", "value": 2026}, {"payroll.txt"}),
        ({"type": "lt", "key": "year", "value": 2025.5}, {"basel.txt", "graz.txt"}),
        ({"type": "lte", "key": "place", "value": "basel"}, {"basel.txt"}),
        ({"type": "in", "key": "year", "value": [2024, 2025]}, {"basel.txt", "graz.txt"}),
        ({"type": "nin", "key": "year", "value": [2024, 2025]}, {"payroll.txt"}),
        ({"type": "eq", "key": "open", "value": True}, {"basel.txt"}),
        ({"type": "eq", "key": "open", "value": 1}, set()),
        ({"type": "gt", "key": "place", "value": 3}, set()),
        ({"type": "ne", "key": "missing", "value": 3}, set(NOTES)),
        ({"type": "lt", "key": "missing", "value": 3}, set()),
        (
            {
                "type": "and",
                "filters": [
                    {"type": "gt", "key": "year", "value": 2024},
                    {"type": "eq", "key": "place", "value": "graz"},
                ],
            },
            {"graz.txt"},
        ),
        (
            {
                "type": "or",
                "filters": [
                    {"type": "eq", "key": "place", "value": "graz"},
                    {"type": "and", "filters": [{"type": "eq", "key": "open", "value": True}]},
                ],
            },
            {"graz.txt", "basel.txt"},
        ),
        ({"type": "and", "filters": []}, set(NOTES)),
        ({"type": "or", "filters": []}, set()),
    ],
)
def test_filters(
    filled: tuple[Gateway, str, dict[str, str]], filters: Any, names: set[str]
) -> None:
    gateway, store, _ = filled
    found = gateway.acme.vector_stores.search(store, query="office", filters=filters)
    assert {hit.filename for hit in found.data} == names


def test_attributes_can_be_replaced(filled: tuple[Gateway, str, dict[str, str]]) -> None:
    gateway, store, files = filled
    changed = gateway.acme.vector_stores.files.update(
        files["graz.txt"], vector_store_id=store, attributes={"place": "moved"}
    )
    assert changed.attributes == {"place": "moved"}
    found = gateway.acme.vector_stores.search(
        store, query="x", filters={"type": "eq", "key": "place", "value": "moved"}
    )
    assert [hit.filename for hit in found.data] == ["graz.txt"]


def test_files_list_content_and_detach(filled: tuple[Gateway, str, dict[str, str]]) -> None:
    gateway, store, files = filled
    api = gateway.acme.vector_stores.files
    listed = api.list(store, order="asc", limit=2)
    assert listed.has_more and [f.id for f in listed] == list(files.values())
    assert api.list(store, filter="failed").data == []
    text = api.content(files["basel.txt"], vector_store_id=store)
    assert [part.text for part in text] == [NOTES["basel.txt"]]
    assert api.delete(files["basel.txt"], vector_store_id=store).deleted
    with pytest.raises(openai.NotFoundError):
        api.retrieve(files["basel.txt"], vector_store_id=store)
    found = gateway.acme.vector_stores.search(store, query="Basel office")
    assert "basel.txt" not in {hit.filename for hit in found.data}


def test_deleting_a_file_takes_it_out_of_the_search(
    filled: tuple[Gateway, str, dict[str, str]],
) -> None:
    gateway, store, files = filled
    gateway.acme.vector_stores.search(store, query="Basel office")  # the index is loaded now
    gateway.acme.files.delete(files["basel.txt"])
    found = gateway.acme.vector_stores.search(store, query="Basel office")
    assert "basel.txt" not in {hit.filename for hit in found.data}


def test_static_chunking(gateway: Gateway) -> None:
    text = (SAMPLES / "supply-contract.md").read_text()
    store = gateway.acme.vector_stores.create()
    file = gateway.acme.vector_stores.files.create_and_poll(
        upload(gateway.acme, "c.md", text),
        vector_store_id=store.id,
        chunking_strategy={
            "type": "static",
            "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 0},
        },
    )
    assert file.chunking_strategy is not None and file.chunking_strategy.type == "static"
    assert file.chunking_strategy.static.max_chunk_size_tokens == 100
    parts = [
        p.text or ""
        for p in gateway.acme.vector_stores.files.content(file.id, vector_store_id=store.id)
    ]
    assert len(parts) >= 3 and all(len(part) <= 500 for part in parts)


def test_a_failed_file_says_why(gateway: Gateway) -> None:
    store = gateway.acme.vector_stores.create()
    made = gateway.acme.files.create(file=("x.pdf", b"%PDF-1.4 broken"), purpose="assistants")
    file = gateway.acme.vector_stores.files.create_and_poll(made.id, vector_store_id=store.id)
    assert file.status == "failed" and file.last_error is not None
    assert file.last_error.code == "invalid_file"
    assert gateway.acme.vector_stores.retrieve(store.id).file_counts.failed == 1


def test_what_is_in_progress_says_when_to_ask_again(gateway: Gateway) -> None:
    gateway.services.ingestion.shutdown()  # ingestion cannot start, as in a server that stops
    store = gateway.acme.vector_stores.create()
    made = upload(gateway.acme, "a.txt", "text")
    raw = gateway.acme.vector_stores.files.with_raw_response.create(store.id, file_id=made)
    assert raw.headers["openai-poll-after-ms"].isdigit()
    assert raw.parse().status == "in_progress"
    assert gateway.services.documents.pending() == [("acme", store.id, made)]


def test_batches(gateway: Gateway) -> None:
    store = gateway.acme.vector_stores.create()
    ids = [upload(gateway.acme, name, text) for name, text in NOTES.items()]
    api = gateway.acme.vector_stores.file_batches
    batch = api.create_and_poll(store.id, file_ids=ids, attributes={"a": 1})
    assert batch.status == "completed" and batch.file_counts.completed == 3
    assert {f.id for f in api.list_files(batch.id, vector_store_id=store.id, limit=2)} == set(ids)
    assert api.cancel(batch.id, vector_store_id=store.id).status == "completed"  # nothing left
    with pytest.raises(openai.NotFoundError):
        api.retrieve("vsfb_unknown", vector_store_id=store.id)
    with pytest.raises(openai.NotFoundError):
        api.create(store.id, file_ids=[ids[0], "file-unknown"])
    with pytest.raises(openai.BadRequestError):
        api.create(store.id, file_ids=[ids[0], ids[0]])


def test_a_cancelled_batch(gateway: Gateway) -> None:
    gateway.services.ingestion.shutdown()
    store = gateway.acme.vector_stores.create()
    api = gateway.acme.vector_stores.file_batches
    batch = api.create(store.id, files=[{"file_id": upload(gateway.acme, "a.txt", "a")}])
    assert batch.status == "in_progress"
    assert api.cancel(batch.id, vector_store_id=store.id).status == "cancelled"


def test_tenants_do_not_see_each_other(filled: tuple[Gateway, str, dict[str, str]]) -> None:
    gateway, store, files = filled
    theirs = gateway.other.vector_stores
    assert theirs.list().data == []
    file = files["basel.txt"]
    own = theirs.create()
    for attempt in (
        lambda: theirs.retrieve(store),
        lambda: theirs.update(store, name="mine"),
        lambda: theirs.delete(store),
        lambda: theirs.search(store, query="Basel"),
        lambda: theirs.files.list(store),
        lambda: theirs.files.retrieve(file, vector_store_id=store),
        lambda: theirs.files.content(file, vector_store_id=store),
        lambda: theirs.files.update(file, vector_store_id=store, attributes={}),
        lambda: theirs.files.delete(file, vector_store_id=store),
        lambda: theirs.files.create(store, file_id=file),
        lambda: theirs.files.create(own.id, file_id=file),
        lambda: theirs.create(file_ids=[file]),
        lambda: theirs.file_batches.create(own.id, file_ids=[file]),
    ):
        with pytest.raises(openai.NotFoundError):
            attempt()
    assert theirs.search(own.id, query="Basel").data == []
    assert [s.id for s in theirs.list()] == [own.id]
    assert gateway.acme.vector_stores.retrieve(store).name == "notes"


def test_an_expired_store_is_not_searched(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = gateway.acme.vector_stores.create(expires_after={"anchor": "last_active_at", "days": 1})
    later = time.time() + 2 * 86_400
    monkeypatch.setattr("gateway.api.vector_stores.schema.time.time", lambda: later)
    assert gateway.acme.vector_stores.retrieve(made.id).status == "expired"
    with pytest.raises(openai.BadRequestError) as caught:
        gateway.acme.vector_stores.search(made.id, query="x")
    assert caught.value.code == "expired"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"query": ""}, "query"),
        ({"query": []}, "query"),
        ({"query": 5}, "query"),
        ({}, "query"),
        ({"query": "x", "max_num_results": 0}, "max_num_results"),
        ({"query": "x", "max_num_results": 51}, "max_num_results"),
        ({"query": "x", "max_num_results": True}, "max_num_results"),
        ({"query": "x", "filters": {"type": "like", "key": "a", "value": "b"}}, "filters"),
        ({"query": "x", "filters": {"type": "in", "key": "a", "value": "b"}}, "filters"),
        ({"query": "x", "filters": {"type": "eq", "key": "a", "value": ["b"]}}, "filters"),
        ({"query": "x", "filters": {"type": "eq", "key": "a", "value": None}}, "filters"),
        ({"query": "x", "filters": []}, "filters"),
        ({"query": "x", "ranking_options": {"score_threshold": 2}}, "ranking_options"),
        ({"query": "x", "Ilse": 1}, None),
        ([], None),
    ],
)
def test_bad_searches(gateway: Gateway, body: Any, param: str | None) -> None:
    store = gateway.acme.vector_stores.create()
    answer = gateway.http.post(
        f"/v1/vector_stores/{store.id}/search", headers=gateway.headers(), json=body
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param
    assert "Ilse" not in answer.text


def test_filters_nested_beyond_reason(gateway: Gateway) -> None:
    store = gateway.acme.vector_stores.create()
    for depth in (20, 5000):
        text = '{"type":"and","filters":[' * depth + "]}" * depth
        answer = gateway.http.post(
            f"/v1/vector_stores/{store.id}/search",
            headers=gateway.headers(),
            content='{"query":"x","filters":' + text + "}",
        )
        assert answer.status_code == 400, depth


@pytest.mark.parametrize(
    "body",
    [
        {"name": 5},
        {"file_ids": "file-1"},
        {"metadata": {"a": 1}},
        {"metadata": {"k" * 65: "v"}},
        {"metadata": {str(i): "v" for i in range(17)}},
        {"metadata": {"k": "v" * 513}},
        {"chunking_strategy": {"type": "Ilse Varga"}},
        {"chunking_strategy": {"type": "static"}},
        {
            "chunking_strategy": {
                "type": "static",
                "static": {"max_chunk_size_tokens": 50, "chunk_overlap_tokens": 0},
            }
        },
        {
            "chunking_strategy": {
                "type": "static",
                "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 51},
            }
        },
        {"expires_after": {"anchor": "created_at", "days": 1}},
    ],
)
def test_bad_stores(gateway: Gateway, body: Any) -> None:
    answer = gateway.http.post("/v1/vector_stores", headers=gateway.headers(), json=body)
    assert answer.status_code == 400
    assert "Varga" not in answer.text
    assert gateway.acme.vector_stores.list().data == []


@pytest.mark.parametrize("content", [b"{", b"\xff", b"null", b'"x"', b"[1"])
def test_bodies_that_are_no_object(gateway: Gateway, content: bytes) -> None:
    answer = gateway.http.post("/v1/vector_stores", headers=gateway.headers(), content=content)
    assert answer.status_code == 400


@pytest.mark.parametrize("store", ["vs_unknown", "vs_%00", "x", "file-1", "vs_" + "a" * 300])
def test_unknown_stores(gateway: Gateway, store: str) -> None:
    for method, tail, body in (
        ("GET", "", None),
        ("POST", "", {"name": "x"}),
        ("DELETE", "", None),
        ("POST", "/search", {"query": "x"}),
        ("POST", "/files", {"file_id": "file-1"}),
        ("GET", "/files", None),
        ("GET", "/files/file-1", None),
        ("POST", "/file_batches", {"file_ids": ["file-1"]}),
        ("GET", "/file_batches/vsfb_1", None),
    ):
        answer = gateway.http.request(
            method, f"/v1/vector_stores/{store}{tail}", headers=gateway.headers(), json=body
        )
        assert answer.status_code == 404, (method, tail)
