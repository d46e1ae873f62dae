"""Which parser reads a file: by its first bytes, then by its name, then by what it looks like."""

import re
from pathlib import PurePosixPath
from typing import Final

from gateway.ingest.parsers.base import Parsed, Parser, invalid, unsupported
from gateway.ingest.parsers.html import HtmlParser
from gateway.ingest.parsers.mail import MailParser
from gateway.ingest.parsers.markdown import MarkdownParser
from gateway.ingest.parsers.pdf import PdfParser
from gateway.ingest.parsers.text import TextParser

_by_name: dict[str, Parser] = {}
_by_extension: dict[str, Parser] = {}

_BINARY: Final = (
    (b"PK\x03\x04", "Office or ZIP"),
    (b"\xd0\xcf\x11\xe0", "old Office"),
    (b"\x89PNG", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"\x1f\x8b", "gzip"),
    (b"7z\xbc\xaf", "7z"),
    (b"{\\rtf", "RTF"),
    (b"\x7fELF", "program"),
)
_REFUSED: Final = frozenset(
    ".docx .doc .pptx .ppt .xlsx .xls .odt .rtf .zip .png .jpg .jpeg .gif .webp .mp3 .mp4".split()
)
_HTML: Final = re.compile(rb"^\s*(?:<!doctype html|<html)", re.IGNORECASE)
_KINDS: Final = "Supported are text, Markdown, HTML, PDF and mail (.eml)."


def register(parser: Parser) -> None:
    """Add a parser.  Raises ValueError when its name or one of its extensions is taken."""
    taken = [each for each in parser.extensions if each in _by_extension]
    if parser.name in _by_name or taken:
        raise ValueError(f"parser {parser.name!r} is registered already (or {taken})")
    _by_name[parser.name] = parser
    _by_extension.update(dict.fromkeys(parser.extensions, parser))


def parser_for(filename: str, data: bytes) -> Parser:
    """Return the parser for a file.

    Raises:
        IngestError: ``unsupported_file`` for a known format that no parser reads.
    """
    if b"%PDF-" in data[:1024]:
        return _by_name["pdf"]
    for magic, kind in _BINARY:
        if data.startswith(magic):
            raise unsupported(f"This is a file of type {kind}. {_KINDS}")
    extension = PurePosixPath(filename.replace("\\", "/")).suffix.lower()
    if extension in _REFUSED:
        raise unsupported(f"Files of type {extension} are not supported. {_KINDS}")
    if extension in _by_extension:
        return _by_extension[extension]
    return _by_name["html" if _HTML.match(data[:1024]) else "text"]


def parse(filename: str, data: bytes) -> Parsed:
    """Return a file as text.

    Raises:
        IngestError: Empty, damaged, protected, or of a kind that no parser reads.
    """
    if not data.strip():
        raise invalid("The file is empty.")
    return parser_for(filename, data).parse(data)


for _parser in (TextParser(), MarkdownParser(), HtmlParser(), PdfParser(), MailParser()):
    register(_parser)
