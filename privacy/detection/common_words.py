"""Everyday English words, so that "may I" is not taken for a person called May.

The list was counted, not written: a word is in it when it stands in lower case at least a quarter of
the time (see data/README.md). What those corpora are too small for is added here.
"""

from functools import cache
from typing import Final

from privacy.detection.wordlists import read_words

_NAMES_THAT_ARE_WORDS: Final = frozenset(
    """
    amber angel angels april archer art ash august autumn baker ball banks barber baron bell berry bill bird bishop
    bob booth brand brook brooks buck bull bush butler candy carpenter case cash chance chase cherry chip
    christian clay cliff cloud colt cook cooper coral cross dawn day dean destiny diamond dick dot
    duke dusty earl eden faith fern field fields finch fisher fletcher flint flora flower ford forest
    forester foster fountain fox frank french gale gardener gem gene german ginger glen grant gray green grey guy
    hall hand happy hardy harmony harp hart hawk hazel head heath heather heaven herb hill holly holland honey
    hood hope house hunt hunter iris ivy jack jade jasmine jay jean jet jewel joy june king kit knight lace
    lake lamb lance lane lark law leaf lily little lord love lucky major marina marine mark marsh mason
    max may melody mercy merit mercury miles miller mills mint misty moon moss nash nick noble north olive
    opal page paris parish park parker parson pat patience peace pearl penny perry pepper pike pine piper pitt plum polo pool
    pope porter post potter power precious price pride prince prudence queen rain ray reed rich ridge rivers
    rob robin rock rocky rod roman rose ruby rusty sage sailor sally sandy savage sawyer scarlet sharp shepherd
    short silver singer skip sky small smith snow sommer sonny spring star stark steel stone storm stormy strong
    sue summer summers sun sunny sunshine swan sweet swift tanner taylor temple tiger trip tucker turkey
    china turner van velvet victor victory violet walker wall wally ward waters weaver webb west
    whisper white wild will willow wing winner winter wise wish wolf wood woods worth wren wright young zion
    monday tuesday wednesday thursday friday saturday sunday january february march july september
    october november december english
    hello hi hey pls plz thanks yeah okay ok treasurer serviced deploy deployed config login logout email emails hire
    elif del def async await yield unsupported hired signed regards sincerely dear cheers sir madam supplies inbox chat app apps online website
    """.split()
)


@cache
def _words() -> frozenset[str]:
    return _NAMES_THAT_ARE_WORDS.union(read_words("common_words.txt.gz"))


def is_common_word(word: str) -> bool:
    """Tell whether ``word`` (one word, any case) is an everyday English word.

    "Will", "MARK" and "pump" are; "Varga" is not. Anything that is not a single word is not.
    """
    return word.casefold() in _words()
