"""Penname: restoration of the originals in what comes back."""

from privacy.restoration.borders import stands_alone
from privacy.restoration.forms import Pair
from privacy.restoration.restorer import Restorer
from privacy.restoration.stream import StreamRestorer

__all__ = ["Pair", "Restorer", "StreamRestorer", "stands_alone"]
