"""How well answers come from the prefix: own rows, another record's rows, none, or the text itself."""

import string
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import fuzz, process

from learning.ppft.generate import answers
from learning.ppft.model import Example, PpftModel
from privacy.ppft.prompt import Record

Prefix = Literal["own", "shuffled", "none", "text"]
_TOKENS = 16


def accuracy(
    model: PpftModel,
    records: Sequence[Record],
    rows: Sequence[NDArray[np.float32]],
    prefix: Prefix = "own",
    texts: Sequence[str] = (),
    batch: int = 32,
) -> float:
    """Share of right answers.

    Args:
        model: What answers.
        records: What is asked, with candidates or accepted answers; only this side has them.
        rows: The rows of each record.
        prefix: ``shuffled`` gives each record another's rows; ``text`` feeds ``texts``.
        batch: Records a batch.
    """
    given = given_rows(records, rows, prefix)
    if prefix == "none":
        return _without_prefix(model, records)
    order = sorted(range(len(records)), key=lambda i: len(given[i]))
    right = 0.0
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        examples = [
            Example(given[i], records[i].task, text=texts[i] if prefix == "text" else "")
            for i in chosen
        ]
        found = answers(model, examples, _TOKENS)
        right += sum(score(records[i], text) for i, text in zip(chosen, found, strict=True))
    return right / max(1, len(records))


def _without_prefix(model: PpftModel, records: Sequence[Record]) -> float:
    """Without a prefix all records of a task get the same answer: it is written once."""
    tasks = sorted({record.task for record in records})
    none = np.zeros((0, model.projection.in_features), np.float32)
    found = dict(
        zip(tasks, answers(model, [Example(none, t) for t in tasks], _TOKENS), strict=True)
    )
    right = sum(score(record, found[record.task]) for record in records)
    return right / max(1, len(records))


def given_rows(
    records: Sequence[Record], rows: Sequence[NDArray[np.float32]], prefix: Prefix
) -> list[NDArray[np.float32]]:
    """Return what each record is answered from.

    A shuffled prefix is that of another record of the same task, drawn once and for all: its form is
    right and its content is not.
    """
    if prefix == "own":
        return list(rows)
    if prefix == "shuffled":
        by_task: dict[int, list[int]] = {}
        for number, record in enumerate(records):
            by_task.setdefault(int(record.task), []).append(number)
        given = list(rows)
        for group in by_task.values():
            # One random cycle: nobody keeps their own, and files sorted by answer are broken up.
            cycle = np.random.default_rng(0).permutation(group).tolist()
            for here, there in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
                given[here] = rows[there]
        return given
    return [row[:0] for row in rows]


def score(record: Record, answer: str) -> float:
    """1 for a right answer, 0 for a wrong one; token F1 where there is nothing to choose from.

    With candidates the answer is read as the candidate most like it: the server sees no options, so
    the client does this.
    """
    if record.candidates:
        return float(choose(answer, record.candidates) == record.answer)
    return max(token_f1(answer, right) for right in (record.answer, *record.accepted))


def choose(answer: str, candidates: Sequence[str]) -> str:
    """Return the candidate that an answer means: the one with the most similar characters."""
    found = process.extractOne(
        answer.casefold(), [c.casefold() for c in candidates], scorer=fuzz.ratio
    )
    return candidates[found[2]]


def token_f1(answer: str, right: str) -> float:
    """SQuAD's token F1, without articles and punctuation."""
    a, b = _words(answer), _words(right)
    common = sum((a & b).values())
    if not common:
        return float(a == b)
    return 2.0 * common / (sum(a.values()) + sum(b.values()))


def _words(text: str) -> Counter[str]:
    kept = text.casefold().translate(str.maketrans("", "", string.punctuation))
    return Counter(word for word in kept.split() if word not in ("a", "an", "the"))
