"""The trained model in this package: what a medical question asks for, from noised rows alone.

Trained on MedQuAD (CC BY 4.0), k = 4, ε = 150; its card is beside the weights.
"""

from pathlib import Path
from typing import Final

INTENT: Final = Path(__file__).parent / "weights" / "intent"
