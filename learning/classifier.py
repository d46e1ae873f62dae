"""Text classification with an encoder: mean of the token states, linear head at zero.

The mean is brought to zero mean and unit variance, so that a linear head learns on it at one rate
whatever the encoder.  The head starts at zero: nothing of a result depends on a seed.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F

from learning.bitfit.data import TensorData, tokenized
from learning.bitfit.delta import apply_delta, read_card
from learning.bitfit.losses import classification_loss
from learning.methods.base import Answer, MethodError, Unanswerable
from learning.rows import Rows, question
from learning.tasks import Prepared, config_of, loading
from privacy.positions import positions

_BATCH: Final = 32
# Whose decoder would want to be told what it says.
_ENCODER_OF: Final = frozenset({"t5", "mt5", "umt5", "longt5"})


class EncoderClassifier(nn.Module):
    """An encoder and a head.

    Args:
        base: Folder of the encoder.
        classes: Number of classes.
    """

    def __init__(self, base: Path, classes: int) -> None:
        super().__init__()
        from transformers import AutoModel

        with loading("weights"):
            self.encoder = AutoModel.from_pretrained(base)
        if self.encoder.config.model_type in _ENCODER_OF:
            self.encoder = self.encoder.get_encoder()
        if getattr(self.encoder, "pooler", None) is not None:
            self.encoder.pooler = None  # not used; its parameters would lack gradients
        for module in self.encoder.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        self.classifier = nn.Linear(self.encoder.config.hidden_size, classes)
        nn.init.zeros_(self.classifier.weight)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        """Return an object with ``logits`` of shape (B, classes)."""
        states = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask[:, :, None].to(states.dtype)
        mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
        return SimpleNamespace(logits=self.classifier(F.layer_norm(mean, mean.shape[1:])))


class Classification:
    """The task of an encoder."""

    def prepare(self, base: Path, rows: Rows, labels: tuple[str, ...], max_length: int) -> Prepared:
        model = EncoderClassifier(base, len(labels))
        _refuse_other_inputs(model)
        return Prepared(
            model,
            _encode(base, rows, labels, max_length),
            classification_loss,
            ("*embeddings.*weight",),
        )

    @torch.no_grad()
    def evaluate(
        self, prepared: Prepared, base: Path, rows: Rows, labels: tuple[str, ...], max_length: int
    ) -> Mapping[str, float]:
        data = _encode(base, rows, labels, max_length)
        model, trained = prepared.model, prepared.model.training
        device = next(model.parameters()).device
        model.eval()
        right, loss = 0, 0.0
        indices = torch.arange(len(data)).numpy()
        for start in range(0, len(data), _BATCH):
            found = data.batch(indices[start : start + _BATCH])
            batch = {name: tensor.to(device) for name, tensor in found.items()}
            target = batch.pop("labels")
            logits = model(**batch).logits
            right += int((logits.argmax(1) == target).sum())
            loss += float(F.cross_entropy(logits, target, reduction="sum"))
        model.train(trained)
        return {"valid_accuracy": right / len(data), "valid_loss": loss / len(data)}

    def load(self, package: Path, base: Path) -> "TunedClassifier":
        return TunedClassifier(package, base)


class TunedClassifier:
    """A classifier that answers a conversation with the label of its last user message.

    Raises:
        CheckpointError: The package is not one, or belongs to another base.
    """

    def __init__(self, package: Path, base: Path) -> None:
        card = read_card(package)
        self._labels: tuple[str, ...] = tuple(card["labels"])
        self._model = EncoderClassifier(base, len(self._labels))
        apply_delta(self._model, package)
        self._model.eval()
        self._tokenizer = _tokenizer(base, int(card["max_length"]))

    @torch.no_grad()
    def answer(self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> Answer:
        """Return the likeliest label and the probability of each.

        Raises:
            Unanswerable: There is no text of the user's to classify.
        """
        text = question(messages)
        if not text.strip():
            raise Unanswerable("a classifier needs a message of the user with text")
        ids = self._tokenizer.encode(text).ids
        batch = torch.tensor([ids], dtype=torch.int64)
        logits = self._model(batch, torch.ones_like(batch)).logits[0]
        scores = dict(zip(self._labels, torch.softmax(logits.double(), 0).tolist(), strict=True))
        return Answer(max(scores, key=lambda label: scores[label]), scores, len(ids), 1)


@torch.no_grad()
def _refuse_other_inputs(model: EncoderClassifier) -> None:
    """Raise MethodError where a model of images, say, would fail at the first row."""
    ids = torch.ones((1, 2), dtype=torch.int64)
    try:
        model.eval()(ids, torch.ones_like(ids))
    except Exception as error:
        raise MethodError(
            "the base model does not read texts as a classifier needs it, by token ids and an attention "
            f"mask alone ({type(error).__name__}); choose an encoder of texts"
        ) from error
    model.train()


def _tokenizer(base: Path, max_length: int) -> Tokenizer:
    with loading("tokenizer"):
        tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(min(max_length, positions(config_of(base), max_length)))
    return tokenizer


def _encode(base: Path, rows: Rows, labels: tuple[str, ...], max_length: int) -> TensorData:
    number = {label: index for index, label in enumerate(labels)}
    examples = rows.examples()
    encodings = _tokenizer(base, max_length).encode_batch([text for text, _ in examples])
    return tokenized(
        [encoding.ids for encoding in encodings],
        [number[label] for _, label in examples],
        pad=config_of(base).get("pad_token_id") or 0,
    )
