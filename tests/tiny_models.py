"""Models of a few thousand random weights, saved as real ones are."""

import shutil
from pathlib import Path

import torch

from connectors.weights import MINILM_TOKENIZER


def save_encoder(
    folder: Path,
    *,
    layers: int,
    seed: int,
    pooler: bool,
    family: str = "bert",
    positions: int = 64,
) -> Path:
    """Write an encoder with MiniLM's vocabulary and its tokenizer; returns the folder."""
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(seed)
    config = AutoConfig.for_model(
        family,
        vocab_size=30522,
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=positions,
        pad_token_id=0,
    )
    AutoModel.from_config(config, add_pooling_layer=pooler).save_pretrained(folder)
    shutil.copy(MINILM_TOKENIZER.verified(), folder / "tokenizer.json")
    return folder
