"""Tells countries, regions, cities and streets apart by public gazetteers."""

import re
from functools import cache
from typing import Final

from privacy.embedding.base import fold
from privacy.pools import lists
from privacy.pools.streets import street_kinds
from privacy.pools.types import CITY, COUNTRY, REGION, STREET

# Usual names of countries that the list has under another name.
_COUNTRY_ALIASES: Final = (
    """
america|burma|congo|czech republic|democratic republic of the congo|england|great britain
holland|ivory coast|macedonia|north korea|northern ireland|persia|scotland|south korea
swaziland|the gambia|the netherlands|the united kingdom|the united states|turkiye|u k|u s
u s a|uae|uk|united states of america|us|usa|wales""".strip()
    .replace("\n", "|")
    .split("|")
)


@cache
def _gazetteer() -> dict[str, str]:
    kinds: dict[str, str] = {}
    sources = ((CITY, ("cities",)), (REGION, ("us_states", "regions", "us_counties")))
    for kind, names in sources:
        kinds.update(dict.fromkeys(lists.folded(names), kind))
    kinds.update(dict.fromkeys(lists.folded(("countries",)), COUNTRY))
    kinds.update(dict.fromkeys(_COUNTRY_ALIASES, COUNTRY))
    kinds["new york"] = CITY  # the city is meant far more often than the state
    return kinds


def classify_place(name: str) -> str:
    """Return the fine type of a place name: loc.country, loc.region, loc.city or loc.street.

    A street is told by its kind ("Road", "rue", "-strasse") at either end, or by a house number;
    what no gazetteer knows counts as a city.  The answer depends on the name alone.
    """
    plain = " ".join(re.findall(r"[^\W_]+", fold(name)))
    known = _gazetteer().get(plain) or _gazetteer().get(fold(name).strip())
    if known is not None:
        return known
    words = plain.split()
    if len(words) > 1 and (words[-1] in street_kinds() or words[0] in street_kinds()):
        return STREET
    if any(word.isdigit() for word in words) and any(word.isalpha() for word in words):
        return STREET
    if words and re.search(r"(?:strasse|straat|gasse|gatan|vagen|weg|allee)$", words[-1]):
        return STREET
    return CITY
