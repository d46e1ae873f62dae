"""Reconstruction without a language model: every row becomes the text of the known window most like it.

The gallery holds windows of other patients only.  Under isotropic noise the nearest by cosine is the
likeliest one, whatever ε is; a ridge estimate of the clean row before the search was tried: it finds less.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]


def reconstruct(rows: Sequence[Rows], gallery: Rows, texts: Sequence[str]) -> list[str]:
    """Write each victim's text from the gallery.

    Args:
        rows: (m, d) unit rows of each victim.
        gallery: (g, d) clean unit rows.
        texts: The text of each of the g windows.
    """
    nearest = [(victim @ gallery.T).argmax(axis=1) for victim in rows]
    return [" ".join(texts[index] for index in found) for found in nearest]
