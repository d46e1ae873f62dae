"""The files API through the real SDK."""

import io
import re
from pathlib import Path

import openai
import pytest
from documents_app import Gateway, open_gateway

CANARY = "Ilse Varga, 17/02/1984"


def upload(client: openai.OpenAI, name: str = "note.txt", content: bytes = CANARY.encode()) -> str:
    return client.files.create(file=(name, content), purpose="assistants").id


def test_upload_read_and_delete(gateway: Gateway) -> None:
    made = gateway.acme.files.create(file=("note.txt", CANARY.encode()), purpose="user_data")
    assert re.fullmatch(r"file-[0-9a-f]+", made.id)
    assert (made.bytes, made.filename, made.purpose) == (22, "note.txt", "user_data")
    assert made.status == "processed"
    assert gateway.acme.files.retrieve(made.id) == made
    assert gateway.acme.files.content(made.id).read() == CANARY.encode()
    gone = gateway.acme.files.delete(made.id)
    assert gone.deleted and gone.id == made.id
    with pytest.raises(openai.NotFoundError):
        gateway.acme.files.retrieve(made.id)
    with pytest.raises(openai.NotFoundError):
        gateway.acme.files.delete(made.id)


def test_pages_cover_every_file_once_in_both_orders(gateway: Gateway) -> None:
    ids = [upload(gateway.acme, f"{i}.txt") for i in range(5)]
    for order, expected in (("asc", ids), ("desc", ids[::-1])):
        first = gateway.acme.files.list(limit=2, order=order)  # type: ignore[arg-type]
        assert first.has_more
        assert [file.id for file in first] == expected  # the SDK pages by itself
    raw = gateway.http.get("/v1/files?limit=2", headers=gateway.headers()).json()
    assert (raw["first_id"], raw["last_id"]) == (ids[4], ids[3])
    assert gateway.acme.files.list(after=ids[0], order="desc").data == []


def test_list_by_purpose(gateway: Gateway) -> None:
    upload(gateway.acme)
    made = gateway.acme.files.create(file=("a.jsonl", b"{}"), purpose="fine-tune")
    assert [f.id for f in gateway.acme.files.list(purpose="fine-tune")] == [made.id]


def test_tenants_do_not_see_each_other(gateway: Gateway) -> None:
    mine = upload(gateway.acme)
    assert gateway.other.files.list().data == []
    for call in (gateway.other.files.retrieve, gateway.other.files.content):
        with pytest.raises(openai.NotFoundError):
            call(mine)
    with pytest.raises(openai.NotFoundError):
        gateway.other.files.delete(mine)
    with pytest.raises(openai.BadRequestError):
        gateway.other.files.list(after=mine)
    assert gateway.acme.files.content(mine).read() == CANARY.encode()


@pytest.mark.parametrize("header", [{}, {"authorization": "Bearer nope"}, {"authorization": "x"}])
def test_no_key_no_file(gateway: Gateway, header: dict[str, str]) -> None:
    mine = upload(gateway.acme)
    for path in ("/v1/files", f"/v1/files/{mine}", f"/v1/files/{mine}/content"):
        answer = gateway.http.get(path, headers=header)
        assert answer.status_code == 401
        assert answer.json()["error"]["type"] == "authentication_error"
    sent = gateway.http.post("/v1/files", headers=header, files={"file": ("a", b"a")})
    assert sent.status_code == 401


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\secret\\plan.txt", "plan.txt"),
        ("na\x00me\x1b.txt", "name.txt"),
        ("müller & söhne.txt", "müller & söhne.txt"),
        ("x" * 400 + ".pdf", "x" * 251 + ".pdf"),
    ],
)
def test_file_names_are_reduced_to_a_plain_name(gateway: Gateway, sent: str, kept: str) -> None:
    from gateway.api.files.upload import safe_filename

    assert safe_filename(sent) == kept
    made = gateway.acme.files.retrieve(upload(gateway.acme, kept))
    assert made.filename == kept


@pytest.mark.parametrize("name", ["", "..", "a/..", "\x00", " "])
def test_a_file_needs_a_name(name: str) -> None:
    from gateway.api.files.upload import safe_filename
    from gateway.errors import ApiError

    with pytest.raises(ApiError) as caught:
        safe_filename(name)
    assert caught.value.status == 400


def test_content_is_sent_as_a_download(gateway: Gateway) -> None:
    mine = upload(gateway.acme, 'a"\r\nb.html', b"<script>alert(1)</script>")
    answer = gateway.http.get(f"/v1/files/{mine}/content", headers=gateway.headers())
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("form", "files", "param"),
    [
        ({}, {"file": ("a.txt", b"a")}, "purpose"),
        ({"purpose": "fun"}, {"file": ("a.txt", b"a")}, "purpose"),
        ({"purpose": "assistants"}, {"other": ("a.txt", b"a")}, "file"),
        ({"purpose": "assistants"}, {"file": ("a.txt", b"")}, "file"),
        (
            {"purpose": "assistants", "expires_after[seconds]": "3600"},
            {"file": ("a", b"a")},
            "expires_after",
        ),
    ],
    ids=["no purpose", "unknown purpose", "no file", "empty file", "expiry"],
)
def test_bad_forms(gateway: Gateway, form: dict, files: dict, param: str) -> None:
    answer = gateway.http.post("/v1/files", headers=gateway.headers(), data=form, files=files)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param
    assert gateway.acme.files.list().data == []


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b"{}"),
        ("multipart/form-data", b"--x--"),
        ("multipart/form-data; boundary=x", b"garbage without a boundary"),
        (
            "multipart/form-data; boundary=x",
            b"--x\r\nContent-Disposition: form-data\r\n\r\na\r\n--x--\r\n",
        ),
    ],
)
def test_malformed_uploads(gateway: Gateway, content_type: str, body: bytes) -> None:
    answer = gateway.http.post(
        "/v1/files", headers={**gateway.headers(), "content-type": content_type}, content=body
    )
    assert answer.status_code == 400
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    "file_id", ["file-unknown", "nonsense", "file-%00", "..%2f..%2fetc", "file-" + "a" * 500]
)
def test_unknown_ids(gateway: Gateway, file_id: str) -> None:
    for method, tail in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        answer = gateway.http.request(
            method, f"/v1/files/{file_id}{tail}", headers=gateway.headers()
        )
        assert answer.status_code == 404
        assert "error" in answer.json()


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=x", "order=up", "purpose=fun", "after=file-no", "after=%00"]
)
def test_bad_list_queries(gateway: Gateway, query: str) -> None:
    answer = gateway.http.get(f"/v1/files?{query}", headers=gateway.headers())
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_too_large_is_413_with_and_without_a_declared_length(tmp_path: Path) -> None:
    with open_gateway(tmp_path, max_upload_bytes=2048) as gateway:
        upload(gateway.acme, content=b"a" * 2048)
        with pytest.raises(openai.APIStatusError) as caught:
            upload(gateway.acme, content=b"a" * 2049)
        assert caught.value.status_code == 413
        assert caught.value.code == "file_too_large"

        sent = 0

        def endless() -> object:
            nonlocal sent
            yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
            for _ in range(1000):
                sent += 65536
                yield b"a" * 65536

        answer = gateway.http.post(
            "/v1/files",
            headers={**gateway.headers(), "content-type": "multipart/form-data; boundary=x"},
            content=endless(),
        )
        assert answer.status_code == 413
        assert len(gateway.acme.files.list().data) == 1


def test_uploads_never_touch_the_temporary_folder_and_lie_encrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tempfile

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("an upload was spooled to disk")

    with open_gateway(tmp_path) as gateway:
        content = CANARY.encode() * 150_000  # 3.3 MB: above where the framework would spool
        monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
        made = gateway.acme.files.create(
            file=("canary-name.txt", io.BytesIO(content)), purpose="assistants"
        )
        monkeypatch.undo()
        assert gateway.acme.files.content(made.id).read() == content
    for path in tmp_path.rglob("*"):
        if path.is_file():
            raw = path.read_bytes()
            assert CANARY.encode() not in raw and b"canary-name" not in raw
