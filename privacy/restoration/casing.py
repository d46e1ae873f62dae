"""Case shapes: the forms that a writer makes of a name, and the same shape of another name."""

import re
from collections.abc import Callable
from typing import Final

_PART: Final = re.compile(r"[^\s\-\u2010\u2011]+")


def title_case(surface: str) -> str:
    """Upper-case the first letter of every blank- or hyphen-separated part, lower-case the rest."""
    return _PART.sub(lambda part: part.group()[:1].upper() + part.group()[1:].lower(), surface)


def sentence_case(surface: str) -> str:
    """Upper-case the first letter only, as at the start of a sentence ('de Vries', 'De Vries')."""
    return surface[:1].upper() + surface[1:]


SHAPES: Final[dict[str, Callable[[str], str]]] = {
    "upper": str.upper,
    "lower": str.lower,
    "title": title_case,
    "sentence": sentence_case,
}


def derived(substitute: str, original: str, shapes: tuple[str, ...]) -> dict[str, str]:
    """Map every derived form of ``substitute`` to the same shape of ``original``.

    A form that equals the canonical one is left out; of two equal forms the earlier shape counts.
    """
    forms: dict[str, str] = {}
    for shape in shapes:
        make = SHAPES[shape]
        form = make(substitute)
        if form != substitute:
            forms.setdefault(form, make(original))
    return forms


def same_shape(matched: str, original: str) -> str:
    """Give ``original`` in upper case when ``matched`` is, otherwise as it is."""
    return original.upper() if len(matched) > 1 and matched.isupper() else original
