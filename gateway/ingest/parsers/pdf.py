"""PDF with a text layer, through pypdf."""

import io
import logging
from typing import Final

from gateway.ingest.parsers.base import (
    MAX_CHARS,
    IngestError,
    Parsed,
    clean,
    invalid,
    require_text,
)

_MAX_PAGES: Final = 5000


class PdfParser:
    """PDF; pages are joined by an empty line."""

    name = "pdf"
    extensions = (".pdf",)

    def parse(self, data: bytes) -> Parsed:
        # pypdf quotes pieces of broken files in its warnings.
        logging.getLogger("pypdf").setLevel(logging.CRITICAL)
        try:
            text, title = _read(data)
        except IngestError:
            raise
        except Exception:  # whatever a hostile file makes the reader raise
            raise invalid("The PDF is damaged and cannot be read. Save it anew.") from None
        hint = " If it is a scan, run text recognition (OCR) on it first."
        return Parsed(require_text(clean(text), hint), clean(title))


def _read(data: bytes) -> tuple[str, str]:
    from pypdf import PasswordType, PdfReader

    reader = PdfReader(io.BytesIO(data), strict=False)
    if reader.is_encrypted and reader.decrypt("") is PasswordType.NOT_DECRYPTED:
        raise invalid("The PDF is protected by a password. Upload a copy without one.")
    if len(reader.pages) > _MAX_PAGES:
        raise invalid(f"The PDF has more than {_MAX_PAGES} pages. Split it.")
    pages, total = [], 0
    for page in reader.pages:
        pages.append(page.extract_text())
        total += len(pages[-1])
        if total > MAX_CHARS:
            break  # `clean` refuses it
    title = str(reader.metadata.title or "") if reader.metadata else ""
    return "\n\n".join(pages), title
