"""Markdown: kept as written, cut at headings."""

import re
from typing import Final

from gateway.ingest.parsers.base import Parsed, clean, require_text
from gateway.ingest.parsers.decoding import decode

_TITLE: Final = re.compile(r"^#{1,3}[ \t]+(.{1,200}?)[ \t#]*$", re.MULTILINE)
_SEPARATORS: Final = (*("\n# ", "\n## ", "\n### ", "\n#### ", "\n\n", "\n", ". ", "; ", " ", ""),)


class MarkdownParser:
    """Markdown; the first heading is the title."""

    name = "markdown"
    extensions = (".md", ".markdown", ".mdx")

    def parse(self, data: bytes) -> Parsed:
        text = require_text(clean(decode(data)))
        title = _TITLE.search(text)
        return Parsed(text, title.group(1) if title else "", _SEPARATORS)
