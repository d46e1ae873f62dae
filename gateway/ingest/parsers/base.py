"""What every parser returns and raises, and how text is cleaned for detection."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

MAX_CHARS: Final = 8_000_000

_PLAIN: Final[Sequence[str]] = ("\n\n", "\n", ". ", "; ", " ", "")


class IngestError(Exception):
    """A file that cannot be ingested.  The message is shown to the client and holds no content.

    Attributes:
        code: ``unsupported_file``, ``invalid_file`` or ``server_error``, as OpenAI has them.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def invalid(message: str) -> IngestError:
    return IngestError("invalid_file", message)


def unsupported(message: str) -> IngestError:
    return IngestError("unsupported_file", message)


@dataclass(frozen=True)
class Parsed:
    """A document as text.

    Attributes:
        text: Clean text (`clean`), offsets of everything later refer to it.
        title: What the document calls itself, or an empty string; helps retrieval only.
        separators: Where to cut it, best place first, for the chunker.
    """

    text: str = field(repr=False)
    title: str = field(default="", repr=False)
    separators: Sequence[str] = _PLAIN


class Parser(Protocol):
    """Reads one kind of file."""

    @property
    def name(self) -> str:
        """Unique name."""

    @property
    def extensions(self) -> tuple[str, ...]:
        """Endings of file names, lower-case, with the dot."""

    def parse(self, data: bytes) -> Parsed:
        """Return the document.  Raises IngestError."""


# Blanks that look like a blank but compare unequal to it: a name written with them would be
# missed by everything that looks for the name with plain blanks.
_BLANKS: Final = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
# Characters without width, and controls: invisible, so they can only hide a name.
_INVISIBLE: Final = re.compile(
    "[\u00ad\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f]"
)
_LINE_ENDS: Final = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


def clean(text: str) -> str:
    """Return text in NFC with plain blanks and line feeds, and without invisible characters.

    Raises:
        IngestError: Longer than `MAX_CHARS`.
    """
    if len(text) > MAX_CHARS:
        raise invalid(f"The document has more than {MAX_CHARS} characters. Split it.")
    text = _INVISIBLE.sub("", _BLANKS.sub(" ", _LINE_ENDS.sub("\n", text)))
    text = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates become "?"
    return unicodedata.normalize("NFC", text)


def require_text(text: str, hint: str = "") -> str:
    """Return ``text`` unless it is blank.  Raises IngestError."""
    if not text.strip():
        raise invalid(f"The file holds no text.{hint}")
    return text
