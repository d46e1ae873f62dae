"""Every format to text, and what is refused."""

import importlib.util
import io
from pathlib import Path
from types import ModuleType

import pytest
from documents_app import SAMPLES

from gateway.ingest.parsers import registry
from gateway.ingest.parsers.base import IngestError, clean
from gateway.ingest.parsers.decoding import decode
from gateway.ingest.parsers.html import html_to_text
from gateway.ingest.parsers.registry import parse
from gateway.ingest.parsers.text import TextParser


def samples_pdf() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_pdf", SAMPLES / "make_pdf.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def encrypted_pdf(password: str) -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(SAMPLES / "lease-basel.pdf"))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Zoë Müller".encode(), "Zoë Müller"),
        ("Zoë Müller".encode("utf-8-sig"), "Zoë Müller"),
        ("Zoë Müller".encode("utf-16"), "Zoë Müller"),
        ("Zoë Müller und Söhne".encode("utf-16-le"), "Zoë Müller und Söhne"),
        ("Zoë Müller und Söhne".encode("utf-16-be"), "Zoë Müller und Söhne"),
        ("Zoë Müller".encode("utf-32"), "Zoë Müller"),
        ("Zoë Müller – “Söhne”".encode("cp1252"), "Zoë Müller – “Söhne”"),
        ("ä ö ü ß é".encode() + b" \xff", "ä ö ü ß é \ufffd"),
        (b"caf\xe9 \x81", "café \x81"),
    ],
)
def test_encodings(data: bytes, text: str) -> None:
    assert decode(data) == text


@pytest.mark.parametrize("data", [bytes(range(256)) * 8, b"\x00\x01\x02\x03" * 100])
def test_binary_is_no_text(data: bytes) -> None:
    with pytest.raises(IngestError) as caught:
        parse("a.txt", data)
    assert caught.value.code == "invalid_file"


def test_invisible_characters_cannot_hide_a_name() -> None:
    hidden = "Il\u00adse\u00a0Va\u200brga\u2009and Jo\u0308rg\x00,\r\nLe\ufeffo\u202a"
    assert clean(hidden) == "Ilse Varga and Jörg,\nLeo"
    assert parse("a.txt", b"Ilse V\x00arga").text == "Ilse Varga"
    assert clean("lone \ud800") == "lone ?"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", b""),
        ("a.txt", b" \n\t"),
        ("a.pdf", b"\n"),
        ("a.md", b"\xef\xbb\xbf"),
        ("a.html", b"<html><script>x</script></html>"),
    ],
)
def test_empty_files(name: str, data: bytes) -> None:
    with pytest.raises(IngestError) as caught:
        parse(name, data)
    assert caught.value.code == "invalid_file"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.docx", b"PK\x03\x04rest"),
        ("a.txt", b"PK\x03\x04rest"),
        ("a.png", b"\x89PNG\r\n"),
        ("photo", b"\xff\xd8\xff\xe0"),
        ("a.xlsx", b"not really"),
        ("a.rtf", b"{\\rtf1 x}"),
    ],
)
def test_unsupported_formats(name: str, data: bytes) -> None:
    with pytest.raises(IngestError) as caught:
        parse(name, data)
    assert caught.value.code == "unsupported_file"
    assert "Supported are" in caught.value.message


@pytest.mark.parametrize(
    ("name", "data", "parser"),
    [
        ("a.txt", b"%PDF-1.4", "pdf"),
        ("noext", b"  <!DOCTYPE html><p>x", "html"),
        ("A.HTM", b"x", "html"),
        ("dir.md/readme", b"# x", "text"),
        ("x\\y.eml", b"From: a", "mail"),
        ("a.unknown", b"x", "text"),
    ],
)
def test_parser_by_bytes_then_name(name: str, data: bytes, parser: str) -> None:
    assert registry.parser_for(name, data).name == parser


def test_a_parser_is_registered_once() -> None:
    with pytest.raises(ValueError, match="registered already"):
        registry.register(TextParser())


def test_html_shows_what_a_reader_sees() -> None:
    text, title = html_to_text(
        "<?xml version='1.0'?><html><head><title>T &amp; U</title><style>p{}</style></head><body>"
        "<!-- Ilse hidden --><h1>Head</h1><p>Ms <b>Ilse</b>&nbsp;<i>Var</i>ga\n  wrote:</p>"
        "<script>evil()</script><ul><li>one<li>two</ul><table><tr><td>a</td><td>b</td></tr></table>"
        "<pre>x\n  y</pre></body></html>"
    )
    assert title == "T & U"
    assert "Ms Ilse Varga wrote:" in text
    assert "one" in text.split("\n") and "two" in text.split("\n")
    assert "a, b" in text
    assert "hidden" not in text and "evil" not in text and "p{}" not in text
    assert not text.startswith("T & U")


def test_html_declares_its_encoding() -> None:
    page = '<html><meta charset="iso-8859-2"><p>Wiśniewski</p></html>'
    assert "Wiśniewski" in parse("a.html", page.encode("iso-8859-2")).text
    wrong = '<html><meta charset="no-such"><p>Wiśniewski</p></html>'
    assert "Wiśniewski" in parse("a.html", wrong.encode()).text


def test_deeply_nested_html_ends() -> None:
    data = b"<html>" + b"<div>" * 20_000 + b"Ilse" + b"</div>" * 20_000
    try:
        assert "Ilse" in parse("a.html", data).text
    except IngestError as error:
        assert error.code == "invalid_file"


def test_pdf_text_and_the_sample_is_what_its_script_makes() -> None:
    committed = (SAMPLES / "lease-basel.pdf").read_bytes()
    assert samples_pdf().build() == committed
    text = parse("lease.pdf", committed).text
    assert "Matthias Brüggemann" in text and "Regula Aebischer-Stöckli" in text


def test_pdf_protected_by_a_password() -> None:
    with pytest.raises(IngestError, match="password") as caught:
        parse("a.pdf", encrypted_pdf("secret"))
    assert caught.value.code == "invalid_file"
    assert "Brüggemann" in parse("a.pdf", encrypted_pdf("")).text  # an owner password only


@pytest.mark.parametrize("cut", [9, 100, 1000, 2500])
def test_broken_pdf(cut: int) -> None:
    data = (SAMPLES / "lease-basel.pdf").read_bytes()
    with pytest.raises(IngestError) as caught:
        parse("a.pdf", data[:cut].replace(b"Page", b"Pxge"))
    assert caught.value.code == "invalid_file"
    with pytest.raises(IngestError):
        parse("a.pdf", b"not a pdf at all")


def test_pdf_without_text_is_explained() -> None:
    with pytest.raises(IngestError, match="OCR"):
        parse("scan.pdf", samples_pdf().build(("",)))


def test_mail_with_encoded_headers_and_body() -> None:
    parsed = parse("m.eml", (SAMPLES / "air-conditioning.eml").read_bytes())
    assert parsed.title == "Air conditioning in Basel: visit on 18 June"
    assert parsed.text.startswith("From: Renée Thébaud <r.thebaud@nordfirn.example.net>")
    assert "NORDFIRN KÄLTETECHNIK GMBH" in parsed.text
    assert "text version" not in parsed.text  # the HTML alternative is not read twice


def test_mail_in_html_only() -> None:
    text = parse("m.eml", (SAMPLES / "complaint-broken-lenses.eml").read_bytes()).text
    assert "a Mr. Obi Nwachukwu, noted" in text
    assert "font-family" not in text


@pytest.mark.parametrize(
    "data",
    [
        b"From: a@example.com\nContent-Type: text/plain; charset=no-such\n\nJ\xc3\xb6rg",
        b"From: a@example.com\nContent-Type: text/plain; charset=utf-8\n\nJ\xf6rg",
        b"Subject: =?utf-8?q?broken\nContent-Type: multipart/mixed; boundary=\n\nJoerg",
    ],
)
def test_malformed_mail_is_read_or_refused_clearly(data: bytes) -> None:
    try:
        assert "J" in parse("m.eml", data).text
    except IngestError as error:
        assert error.code == "invalid_file"


def test_text_that_is_no_mail() -> None:
    with pytest.raises(IngestError, match="mail headers"):
        parse("m.eml", b"hello there")


def test_markdown_title_and_too_long_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse("a.md", b"intro\n## The *title* ##\ntext").title == "The *title*"
    monkeypatch.setattr("gateway.ingest.parsers.base.MAX_CHARS", 10)
    with pytest.raises(IngestError, match="Split it"):
        parse("a.txt", b"12345678901")


def test_every_sample_is_readable(tmp_path: Path) -> None:
    names = [p for p in SAMPLES.iterdir() if p.name not in ("README.md", "make_pdf.py")]
    read = [parse(p.name, p.read_bytes()) for p in names if p.is_file()]
    assert len(read) >= 9
    assert all(150 <= len(each.text.split()) <= 500 for each in read)
