"""HTML: what a reader sees, block by block."""

import re
from typing import Any, Final

from gateway.ingest.parsers.base import Parsed, clean, invalid, require_text
from gateway.ingest.parsers.decoding import decode

_HIDDEN: Final = ("script", "style", "template", "noscript", "svg", "object", "iframe")
_BREAKS: Final = frozenset(
    "address article aside blockquote br dd div dl dt fieldset figcaption figure footer form h1 h2 "
    "h3 h4 h5 h6 header hr li main nav ol option p pre section table tr ul title".split()
)
_PARAGRAPHS: Final = frozenset("h1 h2 h3 h4 h5 h6 p table ul ol dl blockquote section pre".split())
_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.I)
_DECLARATION: Final = re.compile(r"^\s*<\?xml[^>]*\?>", re.I)


class HtmlParser:
    """HTML through beautifulsoup4 and Python's own tokenizer."""

    name = "html"
    extensions = (".html", ".htm", ".xhtml")

    def parse(self, data: bytes) -> Parsed:
        text, title = html_to_text(_decode_html(data))
        return Parsed(require_text(text), title)


def html_to_text(markup: str) -> tuple[str, str]:
    """Return (text, title) of an HTML document or fragment.

    Raises:
        IngestError: Nested beyond what can be read.
    """
    from bs4 import BeautifulSoup, Comment, Doctype

    try:
        soup = BeautifulSoup(_DECLARATION.sub("", markup), "html.parser")
        title = soup.title.get_text(" ", strip=True) if soup.title else ""
        for element in soup(list(_HIDDEN) + ["title"]):
            element.decompose()
        for note in soup.find_all(string=lambda node: isinstance(node, Comment | Doctype)):
            note.extract()
        _mark_blocks(soup)
        text = soup.get_text("")
    except RecursionError:
        raise invalid("The HTML is nested too deeply to be read.") from None
    return _tidy(text), clean(title)


def _mark_blocks(soup: Any) -> None:
    """Turn white space of the source into blanks, and block borders into the line ends seen."""
    for node in soup.find_all(string=True):
        if node.find_parent("pre") is None:
            node.replace_with(re.sub(r"[ \t\r\n\f]+", " ", node))
    for element in soup.find_all(True):
        if element.name in ("td", "th"):
            element.insert_after("\t")
        elif element.name in _BREAKS:
            mark = "\n\n" if element.name in _PARAGRAPHS else "\n"
            element.insert_before(mark)
            element.insert_after(mark)


def _tidy(text: str) -> str:
    lines = [re.sub(r" {2,}", " ", line).strip() for line in clean(text).split("\n")]
    lines = [re.sub(r"\s*\t\s*", ", ", line) for line in lines]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _decode_html(data: bytes) -> str:
    declared = _CHARSET.search(data[:4096])
    if declared and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        try:
            return data.decode(declared.group(1).decode("ascii"))
        except (LookupError, UnicodeDecodeError):
            pass  # a wrong declaration: judge by the bytes
    return decode(data)
