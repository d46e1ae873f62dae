"""Case shapes and white space: how one entity's spellings stand for one another.

A spelling is *regular* when it is the canonical form, its upper or its lower form. Regular
spellings of an original map one to one on the same forms of the substitute, so restoration is
exact. Any other spelling is an entity of its own: it costs a draw, but nothing is lost.
"""

import re

from privacy.substitution.entry import is_marker

_WORD_START = re.compile(r"(?:^|(?<=[\s\-'’]))[^\W\d_]")
_GAP = re.compile(r"\s+")
_SHORT_ACRONYM = 5


def capitalised(text: str) -> str:
    """Return ``text`` in lower case with a capital at each word's start."""
    return _WORD_START.sub(lambda match: match.group().upper(), text.lower())


def canonical_form(surface: str, *, acronyms: bool = False) -> str:
    """Return the form under which a first spelling is remembered.

    An all-capital or all-lower-case spelling says nothing of the name's own form, so it is
    remembered capitalised. With ``acronyms``, a short all-capital word (IBM) is its own form.
    """
    flat = _GAP.sub(" ", surface)
    if flat.isupper() and len(flat) > 1:
        if acronyms and len(flat) <= _SHORT_ACRONYM and " " not in flat:
            return flat
        return capitalised(flat)
    return capitalised(flat) if flat.islower() else flat


def same_shape(surface: str, canonical: str, substitute: str) -> str | None:
    """Return ``substitute`` in the shape that ``surface`` has relative to ``canonical``.

    Returns None when ``surface`` is not a regular spelling of ``canonical``, or when its case or white
    space could not be told again from the substitute's: a marker (``[PERSON_1]``) is read in any case.
    """
    gaps = set(_GAP.findall(surface))
    flat = _GAP.sub(" ", surface)
    shaped = _case(flat, canonical, substitute)
    if shaped is None or gaps <= {" "}:
        return shaped
    if len(gaps) != 1 or " " not in shaped:
        return None
    return shaped.replace(" ", gaps.pop())


def _case(flat: str, canonical: str, substitute: str) -> str | None:
    if flat == canonical:
        return substitute
    upper, lower = canonical.upper(), canonical.lower()
    if upper == lower or is_marker(substitute):
        return None
    if flat == upper and substitute.upper() != substitute:
        return substitute.upper()
    if flat == lower and substitute.lower() != substitute:
        return substitute.lower()
    return None


def entity_key(surface: str) -> str:
    """Return the key under which all regular spellings of a name meet."""
    return _GAP.sub(" ", surface).casefold()
