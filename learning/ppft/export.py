"""The customer's side: records are encoded, noised and written, with what it cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from learning.ppft.dataset import Meta, RowData
from privacy.ppft.accounting import Cost, cost
from privacy.ppft.encoder import TokenEncoder, TokenStates
from privacy.ppft.noise import Noise
from privacy.ppft.prompt import Record, render
from privacy.ppft.rows import obfuscate, pool, slots, unit
from privacy.randomness import Randomness, SystemRandomness

_CHUNK = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """The length filter: longer records are left out, never cut.

    Attributes:
        slots: Most rows of a record.
        answer: Longest answer in characters.
    """

    slots: int = 128
    answer: int = 200


@dataclass(frozen=True, slots=True)
class Encoded:
    """Records with their clean token states; stays inside the trust boundary."""

    records: list[Record]
    states: list[TokenStates]
    texts: list[str]


def encode(records: Iterable[Record], encoder: TokenEncoder, k: int, limits: Limits) -> Encoded:
    """Encode records; those without text, without answer or too long for ``limits`` are left out."""
    kept: Encoded = Encoded([], [], [])
    chosen = [r for r in records if r.answer and len(r.answer) <= limits.answer]
    for start in range(0, len(chosen), _CHUNK):
        chunk = chosen[start : start + _CHUNK]
        texts = [render(record) for record in chunk]
        for record, text, states in zip(chunk, texts, encoder.encode(texts), strict=True):
            if 0 < slots(len(states.states), k) <= limits.slots:
                kept.records.append(record)
                kept.states.append(states)
                kept.texts.append(text)
    return kept


def export(
    encoded: Encoded,
    encoder: TokenEncoder,
    k: int,
    noise: Noise,
    corpora: Sequence[str] = (),
    random: Randomness | None = None,
) -> tuple[RowData, list[Cost]]:
    """Noise the rows of encoded records, each once.

    Returns:
        The dataset that may leave and the cost of each record.
    """
    source = random or SystemRandomness()
    rows = [obfuscate(item.states, k, noise, source) for item in encoded.states]
    epsilon = None if noise.mechanism == "none" else noise.epsilon
    meta = Meta(
        encoder.name, encoder.dimensions, k, noise.mechanism, epsilon, False, tuple(corpora)
    )
    data = RowData(
        meta, rows, [r.task for r in encoded.records], [r.answer for r in encoded.records]
    )
    return data, [cost(len(row), encoder.dimensions, noise) for row in rows]


def export_public(
    encoded: Encoded, encoder: TokenEncoder, k: int, corpora: Sequence[str] = ()
) -> RowData:
    """Return clean rows of public records with the text under each row (stage 1)."""
    meta = Meta(encoder.name, encoder.dimensions, k, public=True, corpora=tuple(corpora))
    return RowData(
        meta,
        [clean_rows(item, k) for item in encoded.states],
        [record.task for record in encoded.records],
        [record.answer for record in encoded.records],
        [
            windows(text, item.offsets, k)
            for text, item in zip(encoded.texts, encoded.states, strict=True)
        ],
    )


def clean_rows(item: TokenStates, k: int) -> NDArray[np.float32]:
    """Return the rows of a text without noise: pooled, of norm 1."""
    return unit(pool(item.states, k)).astype(np.float32)


def windows(text: str, offsets: NDArray[np.int64], k: int) -> list[str]:
    """Return the text under each window of ``k`` tokens, as long as the rows that `pool` gives."""
    return [
        text[int(offsets[start, 0]) : int(offsets[min(start + k, len(offsets)) - 1, 1])]
        for start in range(0, len(offsets), k)
    ]
