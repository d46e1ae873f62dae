"""Whether a text is written in a script that detection covers.

The tagger and the name lists know Latin script alone.  What is found elsewhere is found by form.
"""

import re
from typing import Final

_LETTER: Final = re.compile(r"[^\W\d_]")
_LATIN: Final = re.compile(
    r"[A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff\ufb00-\ufb06\uff21-\uff5a]"
)
_LEAST_LETTERS: Final = 10
_SHARE: Final = 0.2


def is_covered(text: str) -> bool:
    """Tell whether names in ``text`` can be expected to be found.

    False when at least ten letters, and a fifth of all, are of other scripts.
    """
    if text.isascii():
        return True
    letters = len(_LETTER.findall(text))
    others = letters - len(_LATIN.findall(text))
    return others < _LEAST_LETTERS or others < _SHARE * letters
