"""Base models of other families than BERT's and Llama's, as a user puts them into the models folder."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, PreTrainedTokenizerFast

from connectors.weights import MINILM_TOKENIZER
from learning.bitfit import PrivacyError
from learning.methods.base import Facts, MethodError, Nowhere, Result, Work
from learning.methods.dp_bitfit import DpBitfit
from learning.rows import Rows, parse_rows
from learning.tasks import is_causal
from privacy.positions import positions

KIND = DpBitfit()
ROW = b'{"messages": [{"role": "user", "content": "who %d %s"}, {"role": "assistant", "content": "%s"}]}\n'
TEXT: Mapping[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
    "pad_token_id": 0,
}
T5: Mapping[str, Any] = {
    "vocab_size": 30522,
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 24,
    "num_layers": 1,
    "num_heads": 2,
}
DEBERTA = {
    **TEXT,
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "share_att_key": True,
    "position_buckets": 8,
    "position_biased_input": False,
}


def save(folder: Path, family: str, size: Mapping[str, Any], kind: Any = AutoModel) -> Path:
    torch.manual_seed(1)
    kind.from_config(AutoConfig.for_model(family, **size)).save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_file=str(MINILM_TOKENIZER.verified()), pad_token="[PAD]", eos_token="[SEP]"
    ).save_pretrained(folder)
    return folder


def rows(words: int) -> Rows:
    said = [(i, b"x " * (words + i % 3), (b"good", b"bad")[i % 2]) for i in range(16)]
    return parse_rows(b"".join(ROW % one for one in said))


def run(base: Path, folder: Path, words: int = 2, **settings: Any) -> Result | None:
    labels = () if is_causal(base) else ("bad", "good")
    given = {"steps": 2, "batch_size": 16, "max_length": 64, **settings}
    plan = KIND.plan(given, Facts(16, labels, 1e-3, base))
    work = Work(
        method="dp_bitfit",
        config=plan.config,
        base=base,
        labels=labels,
        rows=rows(words),
        public=None,
        seed=1,
        folder=folder,
        should_stop=lambda: False,
        take=lambda step: None,
        emit=lambda message, kind, data: None,
    )
    return KIND.run(work)


@pytest.fixture
def base(tmp_path: Path) -> Callable[..., Path]:
    return lambda *args, **more: save(tmp_path / "base", *args, **more)


def test_mpnet_numbers_tokens_from_behind_its_padding(base: Any, tmp_path: Path) -> None:
    mpnet = base("mpnet", {**TEXT, "pad_token_id": 1})
    result = run(mpnet, tmp_path, words=60)  # more than fit
    assert result is not None
    tuned = KIND.load(result.files[0], mpnet, Nowhere())
    assert tuned.answer([{"role": "user", "content": "who " * 99}], {}).text in ("bad", "good")


@pytest.mark.parametrize(
    ("config", "most"),
    [
        ({"model_type": "mpnet", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({"model_type": "mpnet", "max_position_embeddings": 514, "pad_token_id": 0}, 512),
        ({"model_type": "longformer", "max_position_embeddings": 4098}, 4096),
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({"model_type": "bert", "max_position_embeddings": 512, "pad_token_id": 0}, 512),
    ],
)
def test_positions_that_are_left_for_tokens(config: dict[str, Any], most: int) -> None:
    assert positions(config, 9) == most


def test_of_t5_the_encoder_classifies(base: Any, tmp_path: Path) -> None:
    t5 = base("t5", T5)
    result = run(t5, tmp_path)
    assert result is not None
    tuned = KIND.load(result.files[0], t5, Nowhere())
    assert tuned.answer([{"role": "user", "content": "who 3"}], {}).text in ("bad", "good")


def test_a_writer_with_a_bias_everywhere_needs_none(base: Any, tmp_path: Path) -> None:
    phi = base("phi", TEXT, kind=AutoModelForCausalLM)
    result = run(phi, tmp_path)
    assert result is not None
    KIND.load(result.files[0], phi, Nowhere())


def test_a_model_of_images_is_told_at_once(base: Any, tmp_path: Path) -> None:
    size = {k: v for k, v in TEXT.items() if k not in ("vocab_size", "pad_token_id")}
    vit = base("vit", {**size, "image_size": 8, "patch_size": 4})
    with pytest.raises(MethodError, match="does not read texts"):
        run(vit, tmp_path)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_what_a_refusal_names_can_be_excluded_in_a_job(base: Any, tmp_path: Path) -> None:
    deberta = base("deberta-v2", DEBERTA)
    with pytest.raises(PrivacyError, match=r"key_proj\.bias.*exclude"):
        run(deberta, tmp_path)
    result = run(deberta, tmp_path, exclude=["*key_proj*", "*query_proj*"])
    assert result is not None and result.facts["trained_parameters"] > 34


def test_opt_writes_with_its_flattened_layers_excluded(base: Any, tmp_path: Path) -> None:
    size = {**TEXT, "ffn_dim": 24, "word_embed_proj_dim": 16}
    opt = base("opt", size, kind=AutoModelForCausalLM)
    assert run(opt, tmp_path, exclude=["*fc?.*", "*layers.*final_layer_norm*"]) is not None


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_exclude_that_leaves_nothing_is_told(base: Any, tmp_path: Path, family: str) -> None:
    size = {k: v for k, v in TEXT.items() if k != "pad_token_id"}
    kind = AutoModel if family == "bert" else AutoModelForCausalLM
    with pytest.raises(PrivacyError, match="exclude leaves nothing over"):
        run(base(family, size, kind=kind), tmp_path, exclude=["*"])
