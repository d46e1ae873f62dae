"""Made-up street names: compounds of common English stems and a kind ("Mapleridge Road").

Compounds rather than bare stems, because a bare "Maple Street" stands in many real addresses.
"""

from typing import Final

from privacy.embedding.base import fold
from privacy.pools import lists

_HEADS: Final = """alder amber apple arden ash aspen beech berry birch bramble briar bridge brook
cedar cherry clear cliff clover copper coral crest cypress daisy deer eagle elder elm fair falcon
fern field forest fox gold granite green hawthorn hazel heather hickory high holly iron ivy juniper
lark laurel lime linden long maple marble meadow mill mist moss oak old olive orchard otter pine
plum poplar quail quarry raven red robin rose rowan ruby sand silver sky spring star stone summer
swan sycamore thistle thorn timber tulip upper vine violet walnut water west white wild willow
wind winter wren""".split()
_TAILS: Final = """bank bend brook burn bury cliff cote crest croft dale dell down edge fell field
ford gate glade glen grange grove hall ham haven heath hill holme hurst lea ley mead mere moor mount
nook park path point port ridge rise run shaw side spring stead thorpe vale view water way well wick
wood worth""".split()
_KINDS: Final = ("Street", "Road", "Avenue", "Lane", "Drive", "Court", "Crescent", "Terrace")


def street_names() -> list[str]:
    """Return the street names in a fixed order that mixes stems and kinds; about 5,600 of them."""
    known = (lists.family_ranks(), lists.given_ranks(), lists.place_names())
    words = lists.common_words()
    names: list[str] = []
    for turn in range(len(_TAILS)):
        for place, head in enumerate(_HEADS):
            tail = _TAILS[(turn + 7 * place) % len(_TAILS)]
            stem = head + tail
            if tail in head or head in tail or stem in words or any(stem in k for k in known):
                continue
            names.append(f"{stem.capitalize()} {_KINDS[(turn + place) % len(_KINDS)]}")
    return names


def street_kinds() -> frozenset[str]:
    """Folded words that end or begin a street name in several languages."""
    more = """st rd ave ln dr blvd boulevard way close mews square place circle highway parkway rue
    via viale calle carrer avenida paseo plaza plaats straat laan weg strasse strase gasse allee
    platz ulica rua gatan vagen""".split()
    return frozenset([*(fold(kind) for kind in _KINDS), *more])
