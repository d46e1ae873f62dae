"""Attacks on rows without a language model: retrieval of windows, inference of attributes.

The attacker knows the encoder, k and ε, has a gallery of candidate windows (retrieval) or other
patients' texts (inference), and noises these as the victim does.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from learning.ppft.align import ridge
from learning.ppft.attacks.measures import recall_at_true_count
from learning.ppft.attacks.patients import Patient

Rows = NDArray[np.float32]
_BLOCK = 512


def retrieve(noisy: Rows, truth: NDArray[np.int64], gallery: Rows) -> dict[str, float]:
    """Look every noised row up among clean candidates by cosine, which is the likeliest one.

    Args:
        noisy: (n, d) unit rows.
        truth: (n,) index of each row's own window in the gallery.
        gallery: (g, d) clean unit rows, all different windows.

    Returns:
        ``top1``, ``top10`` and the gallery's ``size``.
    """
    ranks = []
    for start in range(0, len(noisy), _BLOCK):
        scores = noisy[start : start + _BLOCK] @ gallery.T
        own = scores[np.arange(len(scores)), truth[start : start + _BLOCK]]
        ranks.append((scores > own[:, None]).sum(axis=1))
    rank = np.concatenate(ranks)
    return {
        "top1": float((rank == 0).mean()),
        "top10": float((rank < 10).mean()),
        "size": float(len(gallery)),
    }


def infer_attributes(
    known: Sequence[Patient],
    known_rows: Sequence[Rows],
    victims: Sequence[Patient],
    victim_rows: Sequence[Rows],
) -> dict[str, float]:
    """Infer sex, age group and facts from the rows by ridge regression.

    Returns:
        Accuracy or recall of each attribute, with what guessing by frequency reaches beside it.
    """
    x, z = _features(known_rows), _features(victim_rows)
    sexes = sorted({p.sex for p in known})
    found = {
        **_classified("sex", x, z, [sexes.index(p.sex) for p in known], _sexes(victims, sexes)),
        **_classified("age", x, z, [p.age for p in known], [p.age for p in victims]),
    }
    for name in ("symptoms", "antecedents"):
        facts = sorted({fact for p in known for fact in getattr(p, name)})
        y, truth = (_table(people, name, facts) for people in (known, victims))
        guess = np.tile(y.mean(axis=0), (len(truth), 1))
        found[f"{name}_recall"] = recall_at_true_count(_predict(x, y.astype(float), z), truth)
        found[f"{name}_guess"] = recall_at_true_count(guess, truth)
    return found


def _classified(
    name: str,
    x: NDArray[np.float64],
    z: NDArray[np.float64],
    known: Sequence[int],
    truth: Sequence[int],
) -> dict[str, float]:
    classes = max(known) + 1
    y = np.eye(classes)[list(known)]
    hit = _predict(x, y, z).argmax(axis=1) == np.array(truth)
    majority = int(np.bincount(list(known)).argmax())
    return {
        f"{name}_accuracy": float(hit.mean()),
        f"{name}_guess": float((np.array(truth) == majority).mean()),
    }


def _predict(
    x: NDArray[np.float64], y: NDArray[np.float64], z: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Ridge regression with its penalty chosen on a fifth of the attacker's own data."""
    cut = len(x) - len(x) // 5
    best, error = 1.0, np.inf
    for penalty in (0.1, 1.0, 10.0, 100.0):
        weights, bias = ridge(x[:cut], y[:cut], penalty)
        miss = float(((x[cut:] @ weights + bias - y[cut:]) ** 2).mean())
        if miss < error:
            best, error = penalty, miss
    weights, bias = ridge(x, y, best)
    return np.asarray(z @ weights + bias)


def _features(rows: Sequence[Rows]) -> NDArray[np.float64]:
    """Mean of all rows and the first row, where age and sex stand; (n, 2d) float64."""
    return np.array([np.concatenate([r.mean(axis=0), r[0]]) for r in rows], dtype=np.float64)


def _table(people: Sequence[Patient], name: str, facts: Sequence[str]) -> NDArray[np.bool_]:
    return np.array([[fact in getattr(p, name) for fact in facts] for p in people], dtype=np.bool_)


def _sexes(people: Sequence[Patient], sexes: Sequence[str]) -> list[int]:
    return [sexes.index(p.sex) for p in people]
