"""MiniLM with a case shape input, as a Flair embedding."""

from pathlib import Path
from typing import Any, cast

import flair
import torch
from flair.data import Sentence
from flair.embeddings import TokenEmbeddings
from flair.embeddings.base import register_embeddings
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from privacy.detection.ner.words import SHAPE_LINE, SHAPE_OTHER, SHAPES, shape

FROZEN_LAYERS = 2


class ShapedBert(nn.Module):
    """A BERT encoder whose hidden states get a case shape embedding above the frozen layers.

    The word pieces of all-MiniLM are lower case, so capitals never reach the encoder. A learned
    vector per shape (``privacy.detection.ner.words.shape``), added after the frozen bottom layers,
    tells it, and leaves the frozen part as it was trained.
    """

    def __init__(self, bert: BertModel) -> None:
        super().__init__()
        self.embeddings = bert.embeddings
        self.layers = nn.ModuleList(bert.encoder.layer)
        self.shapes = nn.Embedding(SHAPES, int(bert.config.hidden_size))
        nn.init.zeros_(self.shapes.weight)
        for part in (self.embeddings, *self.layers[:FROZEN_LAYERS]):
            part.requires_grad_(False)

    def train(self, mode: bool = True) -> "ShapedBert":
        """Training mode for the trainable layers only: the frozen ones stay deterministic."""
        super().train(mode)
        for part in (self.embeddings, *self.layers[:FROZEN_LAYERS]):
            part.train(False)
        return self

    def forward(self, input_ids: Tensor, mask: Tensor, shapes: Tensor) -> Tensor:
        """Hidden states.

        Args:
            input_ids: Word piece ids, ``(batch, length)``, int64.
            mask: 1 for a piece, 0 for padding, ``(batch, length)``, int64.
            shapes: Shape id of the word of each piece, ``(batch, length)``, int64.

        Returns:
            ``(batch, length, hidden size)``, float32.
        """
        hidden = self.embeddings(input_ids=input_ids)
        bias = (1.0 - mask[:, None, None, :].to(hidden.dtype)) * -10000.0
        for number, layer in enumerate(self.layers):
            if number == FROZEN_LAYERS:
                hidden = hidden + self.shapes(shapes)
            hidden = layer(hidden, attention_mask=bias)
            hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        return cast(Tensor, hidden)


@register_embeddings
class ShapedBertEmbeddings(TokenEmbeddings):  # type: ignore[misc]
    """Flair token embeddings: the top hidden state of each word's first piece.

    Args:
        config: The BERT configuration as a dictionary.
        tokenizer: The text of ``tokenizer.json``.
        model: A directory with the pretrained weights, or None to leave the weights as
            initialised (Flair then loads them from its own checkpoint).
        max_pieces: Longest sequence, word pieces without the two special ones; the words beyond
            get a zero vector. Only training meets it: the run time works in windows.
    """

    embeddings_name = "PennameShapedBertEmbeddings"

    def __init__(
        self,
        config: dict[str, Any],
        tokenizer: str,
        model: Path | None = None,
        max_pieces: int = 160,
    ) -> None:
        self.name = "shaped-bert"
        self.static_embeddings = False
        super().__init__()
        self.config = config
        self.tokenizer_json = tokenizer
        self.max_pieces = max_pieces
        self.tokenizer = Tokenizer.from_str(tokenizer)
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        if model is None:
            bert = BertModel(BertConfig(**config), add_pooling_layer=False)
        else:
            bert = BertModel.from_pretrained(
                str(model), add_pooling_layer=False, local_files_only=True
            )
        self.bert = ShapedBert(bert)
        self.cls = int(self.tokenizer.token_to_id("[CLS]"))
        self.sep = int(self.tokenizer.token_to_id("[SEP]"))
        self.unknown = int(self.tokenizer.token_to_id("[UNK]"))
        self.to(flair.device)

    @property
    def embedding_length(self) -> int:
        return int(self.config["hidden_size"])

    @property
    def embedding_type(self) -> str:
        return "word-level"

    def pieces(self, words: list[str]) -> tuple[list[int], list[int], list[int]]:
        """Piece ids, shape ids and the position of each word's first piece, specials included."""
        encoding = self.tokenizer.encode(words, is_pretokenized=True, add_special_tokens=False)
        pieces: list[list[int]] = [[] for _ in words]
        for piece, word in zip(encoding.ids, encoding.word_ids, strict=True):
            pieces[word].append(piece)
        ids, shapes, first = [self.cls], [SHAPE_OTHER], [-1] * len(words)
        for number, word in enumerate(words):
            kind = shape(word)
            own = [self.sep] if kind == SHAPE_LINE else pieces[number] or [self.unknown]
            if len(ids) + len(own) > self.max_pieces + 1:
                break
            first[number] = len(ids)
            ids.extend(own)
            shapes.extend([kind] * len(own))
        return [*ids, self.sep], [*shapes, SHAPE_OTHER], first

    def _add_embeddings_internal(self, sentences: list[Sentence]) -> None:
        rows = [self.pieces([token.text for token in sentence]) for sentence in sentences]
        longest = max(len(ids) for ids, _, _ in rows)
        table = torch.zeros(3, len(rows), longest, dtype=torch.long, device=flair.device)
        for row, (ids, shapes, _) in enumerate(rows):
            table[0, row, : len(ids)] = torch.tensor(ids)
            table[1, row, : len(ids)] = 1
            table[2, row, : len(ids)] = torch.tensor(shapes)
        hidden = self.bert(table[0], table[1], table[2])
        blank = torch.zeros(self.embedding_length, device=flair.device)
        for row, (sentence, (_, _, first)) in enumerate(zip(sentences, rows, strict=True)):
            for token, position in zip(sentence, first, strict=True):
                token.set_embedding(self.name, hidden[row, position] if position >= 0 else blank)

    def to_params(self) -> dict[str, Any]:
        return {
            "config": self.config,
            "tokenizer": self.tokenizer_json,
            "max_pieces": self.max_pieces,
        }

    @classmethod
    def from_params(cls, params: dict[str, Any]) -> "ShapedBertEmbeddings":
        return cls(**params)
