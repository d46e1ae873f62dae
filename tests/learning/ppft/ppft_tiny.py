"""Tiny models with random weights, in the formats of real ones, and an encoder without any model."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from privacy.ppft.encoder import TokenStates

WORDS = (
    "a all and bad cold cough dull fever film fine flu good great is it not patient poor rain sun "
    "the very warm weather what"
).split()
DIMENSIONS = 16


class WordEncoder:
    """One fixed random vector a word: what pooling and noise meet, without a network."""

    name = "words"
    dimensions = DIMENSIONS

    def encode(self, texts: Sequence[str]) -> list[TokenStates]:
        out = []
        for text in texts:
            states, offsets, start = [], [], 0
            for word in text.split():
                start = text.index(word, start)
                seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
                states.append(np.random.default_rng(seed).normal(size=DIMENSIONS))
                offsets.append((start, start + len(word)))
                start += len(word)
            out.append(
                TokenStates(
                    np.array(states, np.float32).reshape(-1, DIMENSIONS),
                    np.array(offsets, np.int64).reshape(-1, 2),
                )
            )
        return out


def decoder_folder(folder: Path, layers: int = 2) -> Path:
    """Write a Llama of a few thousand weights with a byte-level tokenizer."""
    import torch
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM

    if (folder / "config.json").exists():
        return folder
    torch.manual_seed(0)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<s>": 0, "</s>": 1, **{c: i + 2 for i, c in enumerate(alphabet)}}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in ("<s>", "</s>")])
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=0,
        eos_token_id=1,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "special.json").write_text(json.dumps({"bos": 0, "eos": 1}))
    return folder


def encoder_folder(folder: Path, family: str = "bert") -> Path:
    """Write an encoder of a few thousand weights with a word tokenizer, as a transformers folder.

    Args:
        folder: Where to.
        family: transformers' name of the architecture: ``bert``, ``modernbert``, ``roberta`` ...
    """
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

    torch.manual_seed(0)
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(names)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )
    config = AutoConfig.for_model(
        family,
        vocab_size=len(names),
        pad_token_id=0,
        cls_token_id=2,
        sep_token_id=3,
        bos_token_id=2,
        eos_token_id=3,
        hidden_size=DIMENSIONS,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    AutoModel.from_config(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
