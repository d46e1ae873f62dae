"""Embeddings of names (the map phi of DESIGN 3.3): public, total, deterministic."""

from privacy.embedding.adapters import EncoderEmbedding, KeyedVectorsEmbedding
from privacy.embedding.base import Embedding
from privacy.embedding.build import build_word_vectors
from privacy.embedding.geometry import angle, angles, chord, cosines, unit, unit_rows
from privacy.embedding.glove import EmbeddingError, WordTable, read_glove
from privacy.embedding.vectors import WordVectors

__all__ = [
    "Embedding",
    "EmbeddingError",
    "EncoderEmbedding",
    "KeyedVectorsEmbedding",
    "WordTable",
    "WordVectors",
    "angle",
    "angles",
    "build_word_vectors",
    "chord",
    "cosines",
    "read_glove",
    "unit",
    "unit_rows",
]
