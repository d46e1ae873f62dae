"""Writing with a causal model: the answers of conversations are learned, their questions are not."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from learning.bitfit.data import TensorData
from learning.bitfit.delta import apply_delta, read_card
from learning.bitfit.losses import IGNORED, causal_lm_loss
from learning.methods.base import Answer, MethodError, Unanswerable
from learning.rows import Rows, text_of
from learning.tasks import Prepared, config_of, loading
from privacy.positions import positions

_BATCH: Final = 8
_NEW_TOKENS: Final = 128
_MOST_TOKENS: Final = 1024
_LONGEST: Final = 2048  # where a model has no table of positions

_TEMPLATE: Final = "the model's chat template does not take these roles in this order"


class Writing:
    """The task of a causal model."""

    def prepare(self, base: Path, rows: Rows, labels: tuple[str, ...], max_length: int) -> Prepared:
        model = _model(base)
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        data = _encode(base, rows, max_length)
        labels_of = data.batch(np.arange(len(data)))["labels"]
        if bool((labels_of == IGNORED).all()):
            raise MethodError(
                "no answer begins within the tokens that are read; raise max_length, or shorten what "
                "stands before the answers",
                "max_length",
            )
        return Prepared(model, data, causal_lm_loss)

    @torch.no_grad()
    def evaluate(
        self, prepared: Prepared, base: Path, rows: Rows, labels: tuple[str, ...], max_length: int
    ) -> Mapping[str, float]:
        data = _encode(base, rows, max_length)
        model, trained = prepared.model, prepared.model.training
        device = next(model.parameters()).device
        model.eval()
        indices = torch.arange(len(data)).numpy()
        total = 0.0
        for start in range(0, len(data), _BATCH):
            found = data.batch(indices[start : start + _BATCH])
            batch = {name: tensor.to(device) for name, tensor in found.items()}
            total += float(causal_lm_loss(model, batch).sum())
        model.train(trained)
        return {"valid_loss": total / len(data)}

    def load(self, package: Path, base: Path) -> "TunedWriter":
        return TunedWriter(package, base)


class TunedWriter:
    """A causal model with a delta, greedy.

    Raises:
        CheckpointError: The package is not one, or belongs to another base.
    """

    def __init__(self, package: Path, base: Path) -> None:
        read_card(package)
        self._model = _model(base)
        apply_delta(self._model, package)
        self._model.eval()
        self._tokenizer = _tokenizer(base)

    @torch.no_grad()
    def answer(self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> Answer:
        """Continue a conversation; ``options`` are those of a chat request.

        Raises:
            Unanswerable: It is longer than what the model can read, or no conversation to it.
        """
        turns = [{"role": m["role"], "content": text_of(m.get("content"))} for m in messages]
        try:
            ids = _ids(self._tokenizer, turns, prompt=True)
        except Exception:  # a template is a program of the model's own
            raise Unanswerable(_TEMPLATE) from None
        batch = torch.tensor([ids], dtype=torch.int64)
        asked = options.get("max_completion_tokens") or options.get("max_tokens") or _NEW_TOKENS
        longest = positions(self._model.config.to_dict(), _LONGEST)
        if len(ids) >= longest:
            raise Unanswerable(
                f"the conversation has {len(ids)} tokens and the model takes {longest} with the answer"
            )
        most = min(int(asked), _MOST_TOKENS, longest - len(ids))
        out = self._model.generate(
            input_ids=batch,
            attention_mask=torch.ones_like(batch),
            max_new_tokens=most,
            do_sample=False,
            pad_token_id=self._tokenizer.pad_token_id or self._tokenizer.eos_token_id,
        )[0, len(ids) :]
        text = self._tokenizer.decode(out, skip_special_tokens=True).strip()
        ends = self._model.generation_config.eos_token_id
        ended = out[-1].item() in (ends if isinstance(ends, list) else [ends])
        return Answer(text, {}, len(ids), len(out), len(out) >= most and not ended)


def _model(base: Path) -> Any:
    from transformers import AutoModelForCausalLM

    with loading("weights"):
        return AutoModelForCausalLM.from_pretrained(*_where(base)[0], **_where(base)[1])


def _tokenizer(base: Path) -> Any:
    from transformers import AutoTokenizer

    with loading("tokenizer"):
        return AutoTokenizer.from_pretrained(*_where(base)[0], **_where(base)[1])


def _where(base: Path) -> tuple[tuple[str], dict[str, str]]:
    if base.suffix == ".gguf":
        return (str(base.parent),), {"gguf_file": base.name}
    return (str(base),), {}


def _ids(tokenizer: Any, turns: Sequence[Mapping[str, Any]], *, prompt: bool) -> list[int]:
    if tokenizer.chat_template:
        found = tokenizer.apply_chat_template(turns, add_generation_prompt=prompt)
        return list(found)
    # A base without a template of its own: plain turns, one a paragraph.
    text = "".join(f"{turn['role']}: {turn['content']}\n\n" for turn in turns)
    return list(tokenizer(text + ("assistant:" if prompt else "")).input_ids)


def _encode(base: Path, rows: Rows, max_length: int) -> TensorData:
    """Token ids; only those of the last answer are to be predicted.  Raises MethodError."""
    tokenizer = _tokenizer(base)
    most = min(max_length, positions(config_of(base), max_length))
    pairs = []
    for line, row in zip(rows.lines, rows.rows, strict=True):
        turns = row["messages"]
        try:
            whole = _ids(tokenizer, turns, prompt=False)[:most]
            start = len(_ids(tokenizer, turns[:-1], prompt=True))
        except Exception:  # a program of the model's own, whose words may quote a row
            raise MethodError(f"line {line}: {_TEMPLATE}") from None
        pairs.append((whole, start))
    longest = max(len(ids) for ids, _ in pairs)
    input_ids = torch.zeros((len(pairs), longest), dtype=torch.int64)
    mask, labels = torch.zeros_like(input_ids), torch.full_like(input_ids, IGNORED)
    for number, (ids, start) in enumerate(pairs):
        row_ids = torch.tensor(ids, dtype=torch.int64)
        input_ids[number, : len(ids)] = row_ids
        mask[number, : len(ids)] = 1
        labels[number, start : len(ids)] = row_ids[start:]
    return TensorData({"input_ids": input_ids, "attention_mask": mask, "labels": labels})
