"""Named entity recognition: the shipped tagger and an adapter for any Flair tagger."""

from privacy.detection.ner.tagger import NerTagger
from privacy.detection.ner.weights import WeightsError

__all__ = ["NerTagger", "WeightsError"]
