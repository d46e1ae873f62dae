"""Batched generation with a KV cache: one prefill, then one token a row and step."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from learning.ppft.model import Example, PpftModel


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one answer is drawn: most tokens, temperature (0 is greedy)."""

    tokens: int = 32
    temperature: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """One row's news after one step.

    Attributes:
        index: Which example.
        text: New text, perhaps empty while a character is incomplete.
        finish: ``stop``, ``length`` or ``cancelled`` at the row's end, else None.
        tokens: Tokens of the row so far.
    """

    index: int
    text: str
    finish: str | None
    tokens: int


@torch.inference_mode()
def generate(
    model: PpftModel,
    examples: Sequence[Example],
    sampling: Sequence[Sampling],
    wanted: Callable[[int], bool] = lambda _: True,
) -> Iterator[Step]:
    """Yield every row's text as it comes, until all rows have ended.

    Args:
        model: Projection and decoder.
        examples: One or more; answers are ignored.
        sampling: One an example.
        wanted: Asked every step whether an example's answer is still waited for; one that is not ends
            with ``cancelled``.
    """
    from transformers import DynamicCache

    batch = model.batch([Example(e.rows, e.task, "", e.text) for e in examples], left=True)
    rows = [_Row(index, s, model) for index, s in enumerate(sampling)]
    cache = DynamicCache()
    mask, inputs = batch.mask, {"inputs_embeds": batch.embeds}
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    while True:
        hidden = model.network.model(
            **inputs,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
        ).last_hidden_state
        chosen = _choose(model.network.lm_head(hidden[:, -1]).float(), rows)
        for row, token in zip(rows, chosen.tolist(), strict=True):
            yield row.take(token, wanted(row.index))
        going = [i for i, row in enumerate(rows) if row.finish is None]
        if not going:
            return
        if len(going) < len(rows):
            # Ended rows leave the batch, the cache with them.
            keep = torch.tensor(going, device=model.device)
            cache.batch_select_indices(keep)
            mask, positions, chosen = mask[keep], positions[keep], chosen[keep]
            rows = [rows[i] for i in going]
        mask = torch.cat([mask, mask.new_ones((len(rows), 1))], dim=1)
        positions = positions[:, -1:] + 1
        inputs = {"input_ids": chosen[:, None]}


def answers(model: PpftModel, examples: Sequence[Example], tokens: int = 24) -> list[str]:
    """Return greedy answers of a batch."""
    texts = [""] * len(examples)
    for step in generate(model, examples, [Sampling(tokens)] * len(examples)):
        texts[step.index] += step.text
    return [text.strip() for text in texts]


class _Row:
    """One answer in the making; text comes out only where characters are complete."""

    def __init__(self, index: int, sampling: Sampling, model: PpftModel) -> None:
        self.index = index
        self.sampling = sampling
        self.finish: str | None = None
        self._decoder = model.decoder
        self._ids: list[int] = []
        self._sent = ""

    def take(self, token: int, wanted: bool) -> Step:
        if not wanted:
            self.finish = "cancelled"
        elif token == self._decoder.eos:
            self.finish = "stop"
        else:
            self._ids.append(token)
            if len(self._ids) >= self.sampling.tokens:
                self.finish = "length"
        text = self._decoder.text(self._ids)
        if self.finish is None:
            text = text.rstrip("\ufffd")  # half a character: the rest of its bytes is to come
        new, self._sent = text[len(self._sent) :], text
        return Step(self.index, new, self.finish, len(self._ids))


def _choose(logits: Any, rows: Sequence[_Row]) -> Any:
    chosen = logits.argmax(dim=-1)
    for number, row in enumerate(rows):
        if row.sampling.temperature > 0:
            weights = torch.softmax(logits[number] / row.sampling.temperature, dim=-1)
            chosen[number] = torch.multinomial(weights, 1)[0]
    return chosen
