"""What an attack found: ROUGE-L, recall of facts, accuracy above guessing."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from learning.ppft.attacks.patients import Patient

_WORD = re.compile(r"\w+")


def rouge_l(found: str, original: str) -> float:
    """ROUGE-L F1 over lower-cased words (Lin 2004): longest common subsequence."""
    a, b = _WORD.findall(found.lower()), _WORD.findall(original.lower())
    if not a or not b:
        return float(a == b)
    lengths = [0] * (len(b) + 1)
    for word in a:
        diagonal = 0
        for j, other in enumerate(b, start=1):
            here = lengths[j]
            lengths[j] = diagonal + 1 if word == other else max(here, lengths[j - 1])
            diagonal = here
    return 2.0 * lengths[-1] / (len(a) + len(b))


def read_facts(texts: Sequence[str], patients: Sequence[Patient]) -> dict[str, float]:
    """What a reader of (reconstructed or sanitised) texts learns.

    Returns:
        Mean ROUGE-L, the share of symptoms and of antecedents that stand in the text word by word, and
        the share of patients whose sex can be read.
    """
    lower = [text.lower() for text in texts]
    pairs = list(zip(lower, patients, strict=True))
    return {
        "rouge_l": float(np.mean([rouge_l(t, p.text) for t, p in pairs])),
        "symptom_recall": _recall([(t, p.symptoms) for t, p in pairs]),
        "antecedent_recall": _recall([(t, p.antecedents) for t, p in pairs]),
        "sex_accuracy": float(np.mean([_sex(t) == p.sex for t, p in pairs])),
    }


def recall_at_true_count(scores: NDArray[np.float64], truth: NDArray[np.bool_]) -> float:
    """Share of the true labels among each row's highest scores, as many as are true."""
    hits = total = 0
    for row, wanted in zip(scores, truth, strict=True):
        count = int(wanted.sum())
        hits += int(wanted[np.argsort(-row)[:count]].sum())
        total += count
    return hits / max(1, total)


def _recall(pairs: Sequence[tuple[str, frozenset[str]]]) -> float:
    found = sum(fact.lower() in text for text, facts in pairs for fact in facts)
    return found / max(1, sum(len(facts) for _, facts in pairs))


def _sex(text: str) -> str:
    words = set(_WORD.findall(text))
    if words & {"female", "woman"}:
        return "F"
    return "M" if words & {"male", "man"} else ""
