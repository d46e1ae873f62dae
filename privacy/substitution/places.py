"""Organisations and places in parts: legal forms and house-number shapes stay."""

import re

_LEGAL_FORM = re.compile(
    r"(?:,?\s+(?:GmbH(?:\s*&\s*Co\.?\s*KG)?|AG|KGaA|KG|OHG|e\.?V\.?|UG|SE|Inc\.?|Incorporated|LLC|L\.L\.C\.|"
    r"LLP|LP|Ltd\.?|Limited|PLC|plc|Corp\.?|Corporation|Co\.|Company|S\.?A\.?S?\.?|S\.?r\.?l\.?|S\.?p\.?A\.?|"
    r"B\.?V\.?|N\.?V\.?|Pty\.?(?:\s+Ltd\.?)?|Oy|AB|ASA?|ApS|Sp\.\s*z\s*o\.\s*o\.))+$"
)
_LEADING_ARTICLE = re.compile(r"^the\s+", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_ADDRESS_PART = re.compile(r"[^,\n]+")
_WORDS = re.compile(r"[^\W\d_][^\d,\n]*[^\W\d_]|[^\W\d_]")


def organisation_core(surface: str) -> tuple[int, int]:
    """Return the offsets of an organisation's own name: no article before, no legal form behind."""
    article = _LEADING_ARTICLE.match(surface)
    start = article.end() if article else 0
    form = _LEGAL_FORM.search(surface)
    end = form.start() if form and form.start() > start else len(surface)
    return start, end


def is_address(surface: str) -> bool:
    """Tell whether a place is written with a number: a street address or a postcode."""
    return bool(_NUMBER.search(surface))


def address_parts(surface: str) -> list[tuple[int, int, bool]]:
    """Split an address into ``(start, end, is_number)`` pieces, in order."""
    pieces: list[tuple[int, int, bool]] = []
    for part in _ADDRESS_PART.finditer(surface):
        base = part.start()
        pieces.extend(
            (base + m.start(), base + m.end(), True) for m in _NUMBER.finditer(part.group())
        )
        pieces.extend(
            (base + m.start(), base + m.end(), False) for m in _WORDS.finditer(part.group())
        )
    return sorted(pieces)
