"""Where a capital says nothing, because every word would carry one there."""

import re
from typing import Final

_REACH: Final = 12
_BREAK: Final = re.compile(r"[.!?:\n\"“(\[*#>|•-][\s\"'“‘(*_#>]*\Z")
_ONLY_OPENERS: Final = re.compile(r"[\s\"'“‘(*_#>-]*\Z")


def sentence_start(text: str, position: int) -> bool:
    """Tell whether ``position`` is the start of the text, a line, a sentence, a quotation or an item."""
    low = max(0, position - _REACH)
    if _BREAK.search(text, low, position):
        return True
    return low == 0 and _ONLY_OPENERS.match(text, 0, position) is not None
