"""Projection, continuous prefix and decoder with LoRA: what the server computes with.

The decoder's input is ``[BOS] prefix instruction``; the prefix is the projected rows.  LoRA with r = 16
and α = 32 sits on the attention by default (DESIGN 8.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from learning.ppft.decoder import Decoder, DecoderError
from privacy.ppft.tasks import SPECS, Task

ATTENTION: Final = ("q_proj", "k_proj", "v_proj", "o_proj")
_IGNORED: Final = -100


@dataclass(frozen=True, slots=True)
class Lora:
    """LoRA's settings: rank, scale, and the modules it is put on."""

    r: int = 16
    alpha: int = 32
    dropout: float = 0.0
    targets: tuple[str, ...] = ATTENTION


@dataclass(frozen=True, slots=True)
class Example:
    """One training or generation example.

    Attributes:
        rows: float32 (slots, d_e); no rows mean no prefix.
        task: Chooses the instruction.
        answer: Text to learn, empty in generation.
        text: Original text in place of the prefix, only for the text-fed comparison.
    """

    rows: NDArray[np.float32]
    task: Task
    answer: str = ""
    text: str = ""


@dataclass
class Batch:
    """Right- or left-padded decoder inputs.

    Attributes:
        embeds: (batch, length, d_d).
        mask: (batch, length), 1 for real positions.
        labels: (batch, length), -100 where nothing is learnt.
    """

    embeds: Tensor
    mask: Tensor
    labels: Tensor


@dataclass
class PpftModel:
    """A decoder, its LoRA and the projection in front of it.

    Attributes:
        decoder: The frozen decoder with its tokenizer.
        projection: Linear d_e → d_d, fp32.
        lora: The peft model around the decoder's, None before stage 1 adds it.
    """

    decoder: Decoder
    projection: nn.Linear
    lora: Any = None
    _instructions: dict[Task, list[int]] = field(default_factory=dict)

    @classmethod
    def create(cls, decoder: Decoder, dimensions: int, lora: Lora | None) -> "PpftModel":
        """Put an untrained projection, and LoRA unless None, before a decoder."""
        decoder.model.requires_grad_(False)
        width = int(decoder.model.config.hidden_size)
        projection = nn.Linear(dimensions, width).to(decoder.model.device)
        return cls(decoder, projection, _with_lora(decoder.model, lora) if lora else None)

    @property
    def device(self) -> torch.device:
        """Where the decoder lies."""
        return self.projection.weight.device

    @property
    def network(self) -> Any:
        """The causal model as transformers knows it, LoRA's layers inside."""
        return self.decoder.model

    def trainable(self) -> dict[str, nn.Parameter]:
        """Return the trainable parameters by stable names."""
        named = {f"projection.{n}": p for n, p in self.projection.named_parameters()}
        if self.lora is not None:
            named |= {f"lora.{n}": p for n, p in self.lora.named_parameters() if "lora_" in n}
        return named

    def prefix(self, rows: NDArray[np.float32]) -> Tensor:
        """Project rows (slots, d_e) to decoder inputs (slots, d_d)."""
        projected: Tensor = self.projection(torch.from_numpy(rows).to(self.device))
        return projected.to(self.network.dtype)

    def embed(self, ids: Sequence[int]) -> Tensor:
        """Return the decoder's input embeddings of token ids, (len(ids), d_d)."""
        table: Tensor = self.network.get_input_embeddings()(
            torch.tensor(list(ids), dtype=torch.long, device=self.device)
        )
        return table

    def instruction(self, task: Task) -> list[int]:
        """Token ids of a task's public instruction."""
        if task not in self._instructions:
            self._instructions[task] = self.decoder.ids(SPECS[task].instruction)
        return self._instructions[task]

    def batch(self, examples: Sequence[Example], *, left: bool = False) -> Batch:
        """Assemble decoder inputs; answers get labels, the rest none.

        Args:
            examples: At least one.
            left: Pad on the left, as generation needs.
        """
        pieces = [self._piece(example) for example in examples]
        width = max(len(labels) for _, labels in pieces)
        first = pieces[0][0]
        embeds = first.new_zeros((len(pieces), width, first.shape[1]))
        mask = torch.zeros((len(pieces), width), dtype=torch.long, device=self.device)
        labels = torch.full_like(mask, _IGNORED)
        for row, (inputs, wanted) in enumerate(pieces):
            n = len(wanted)
            where = slice(width - n, width) if left else slice(0, n)
            embeds[row, where] = inputs
            mask[row, where] = 1
            labels[row, where] = torch.tensor(wanted, device=self.device)
        return Batch(embeds, mask, labels)

    def loss(self, examples: Sequence[Example]) -> Tensor:
        """Mean cross-entropy of the answers' tokens; the head runs on these positions only."""
        batch = self.batch(examples)
        hidden = self.network.model(
            inputs_embeds=batch.embeds, attention_mask=batch.mask, use_cache=False
        ).last_hidden_state
        wanted = batch.labels[:, 1:]
        chosen = wanted != _IGNORED
        logits = self.network.lm_head(hidden[:, :-1][chosen]).float()
        return nn.functional.cross_entropy(logits, wanted[chosen])

    def _piece(self, example: Example) -> tuple[Tensor, list[int]]:
        head = self.embed([self.decoder.bos])
        body = [self.prefix(example.rows)] if len(example.rows) else []
        if example.text:
            body = [self.embed(self.decoder.ids(example.text))]
        answer = (
            [*self.decoder.ids(f" {example.answer}"), self.decoder.eos] if example.answer else []
        )
        tail = self.embed([*self.instruction(example.task), *answer])
        inputs = torch.cat([head, *body, tail])
        return inputs, [_IGNORED] * (len(inputs) - len(answer)) + answer


def _with_lora(model: Any, lora: Lora) -> Any:
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=list(lora.targets),
        task_type="CAUSAL_LM",
    )
    try:
        wrapped = get_peft_model(model, config)
    except ValueError:
        raise DecoderError(
            f"the decoder has no layers {', '.join(lora.targets)}, on which LoRA would sit; take one "
            "of the Llama family"
        ) from None
    for name, parameter in wrapped.named_parameters():
        if "lora_" in name:
            parameter.data = parameter.data.float()
    return wrapped
