"""From bytes to text, when nobody says which encoding it is."""

import codecs
import re
from typing import Final

from gateway.ingest.parsers.base import invalid

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is a prefix of this one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_SAMPLE: Final = 65_536


def decode(data: bytes) -> str:
    """Return the text of bytes in an unknown encoding.

    The byte order mark decides, else it is UTF-8, else UTF-16 by its zero bytes, else
    Windows-1252.  A few broken bytes in what is otherwise UTF-8 become U+FFFD; the rest is kept.

    Raises:
        IngestError: The bytes are no text.
    """
    text = _decode(data)
    sample = text[:_SAMPLE]
    if len(_CONTROL.findall(sample)) > len(sample) // 50 + 2:
        raise invalid("The file is not text: it holds binary data. Upload text, HTML, PDF or mail.")
    return text


def _decode(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    wide = _wide_encoding(data[:_SAMPLE])
    if wide is not None:
        return data.decode(wide, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    repaired = data.decode("utf-8", "replace")
    broken = repaired.count("\ufffd")
    sound = sum(1 for char in repaired if char > "\x7f") - broken
    if sound > 4 * broken:
        return repaired
    # Five byte values have no meaning in Windows-1252; Latin-1 gives them control characters.
    return "".join(_BY_BYTE[byte] for byte in data)


_BY_BYTE: Final = [bytes([b]).decode("cp1252", "ignore") or chr(b) for b in range(256)]


def _wide_encoding(sample: bytes) -> str | None:
    """Return a UTF-16 variant when every other byte is mostly zero, as in Western text."""
    half = len(sample) // 2
    if half < 4:
        return None
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > 0.7 * half and even < 0.05 * half:
        return "utf-16-le"
    if even > 0.7 * half and odd < 0.05 * half:
        return "utf-16-be"
    return None
