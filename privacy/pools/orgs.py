"""Cleans raw organisation lists: legal forms go, and so does what is no organisation."""

import re
from collections.abc import Iterable
from typing import Final

from privacy.embedding.base import fold
from privacy.pools import lists

_LEGAL: Final = frozenset(
    """ab ad adr ag ao as asa bhd bv ca co coltd company corp corporation cv dd gmbh inc
    incorporated inh jsc kg kgaa kk limited llc llp lp ltd mbh nv oao oy oyj pao pcl plc
    pjsc pte pty reit sa sab sau sae saog sas sca se sgps sl slu sp spa spzoo srl tbk the
    trust ua ultd""".split()
)
# Words of securities, funds and shells: such an entry is a product, not an organisation.
_NOT_ORGS: Final = frozenset(
    """acquisition bond bonds bull bear class cumulative cl daily debenture debentures
    depositary due equity etf etfs etn etp fund funds index inverse leveraged merger msci
    notes note ordinary perpetual portfolio preferred preference redeemable right rights
    securities senior series share shares shs short spac stock strategy subordinated target
    ucits ultra ultrapro unit units warrant warrants ishares lyxor wisdomtree proshares
    direxion invesco spdr xtrackers amundi powershares vaneck nikkei topix nasdaq nyse ftse
    dow dax euro eur usd gbp yen oil gold listed japan""".split()
)
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'-]*")
_TAIL: Final = re.compile(r"[\s,]+(?:\([^)]*\)|[&/].*)?$")


def clean_org(raw: str) -> str | None:
    """Return the name without legal form, or None when the entry does not serve.

    Kept are 1 to 4 words of plain letters (hyphen and apostrophe allowed), each with a capital
    except of/and/for/de, not all in capitals unless it is a single short word.
    """
    text = re.sub(r"\([^)]*\)", " ", raw.replace("\u2019", "'"))
    text = re.sub(r"(?<=\b[A-Za-z])\.(?=[A-Za-z]\b)", "", text)
    words = [word.strip(".,") for word in text.split()]
    if any(fold(word) in _NOT_ORGS for word in words):
        return None
    while words and (fold(words[-1]).replace(".", "") in _LEGAL or words[-1] in {"&", "and", ""}):
        words.pop()
    while words and fold(words[0]) == "the":
        words.pop(0)
    if not 1 <= len(words) <= 4 or not all(_proper(word) for word in words):
        return None
    if words[-1].islower() or not words[0][0].isupper() or all(w.isupper() for w in words):
        return None
    name = " ".join(words)
    return name if 4 <= len(name) <= 36 else None


def _proper(word: str) -> bool:
    if not _WORD.fullmatch(word) or len(word) < 2 or fold(word) in _LEGAL:
        return False
    return word[0].isupper() or word in {"of", "and", "for", "de"}


def org_candidates(names: Iterable[str] = lists.ORG_LISTS) -> list[str]:
    """Return the cleaned candidates of the source lists, taken in turn."""
    cleaned = (clean_org(raw) for raw in lists.interleaved(names))
    return [name for name in cleaned if name is not None]


def single_word_clash(name: str) -> str | None:
    """Rule: a one-word organisation is no personal name, place or English word."""
    if " " in name:
        return None
    key = fold(name)
    tables = (
        lists.given_ranks(),
        lists.family_ranks(),
        lists.place_names(),
        lists.common_words(),
    )
    return "ambiguous" if any(key in table for table in tables) else None
