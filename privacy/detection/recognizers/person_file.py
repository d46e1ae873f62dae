"""Names in the names of documents: ``Varga_Ilse_contract.docx``, ``CV-Ilse-Varga.pdf``.

Only documents, as people name them: the files of programs are called after other things.
"""

import re
from typing import Final

from privacy.detection.recognizers.names import make_word
from privacy.types import PERSON, Span

_FILE: Final = re.compile(
    r"(?<![\w.-])(?P<stem>[\w%-]{1,40}(?:\.[\w%-]{1,40}){0,3})\."
    r"(?:pdf|docx?|odt|rtf|xlsx?|ods|csv|pptx?|txt|eml|msg|jpe?g|png|tiff?|heic|zip|mp3|mp4|wav|m4a|vcf)(?!\w)",
    re.I,
)
_PART: Final = re.compile(r"[^\W\d_]{3,24}")
_JOINT: Final = re.compile(r"(?:[_.-]|%20){1,2}")


class PersonFileRecognizer:
    """A given and a family name beside each other, in either order, in the name of a document."""

    name = "person.file"
    types = (PERSON,)

    def find(self, text: str) -> list[Span]:
        spans: dict[tuple[int, int], Span] = {}
        for file in _FILE.finditer(text):
            parts = list(_PART.finditer(text, *file.span("stem")))
            for left, right in zip(parts, parts[1:], strict=False):
                if _JOINT.fullmatch(text, left.end(), right.start()) and _is_pair(left, right):
                    for part in (left, right):
                        spans[part.span()] = Span(*part.span(), PERSON, 0.8, self.name)
        return list(spans.values())


def _is_pair(left: re.Match[str], right: re.Match[str]) -> bool:
    one, other = (make_word(m.group(), m.start()) for m in (left, right))
    if one.common or other.common:
        return False
    return (one.given and other.family) or (one.family and other.given)
