"""Both tasks, run in this process on tiny models: trained, saved, loaded, asked."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import save_encoder

from connectors.weights import MINILM_TOKENIZER
from learning.bitfit import read_card
from learning.methods.base import Facts, MethodError, Nowhere, Unanswerable, Work
from learning.methods.dp_bitfit import DpBitfit
from learning.rows import Rows, parse_rows
from learning.tasks import is_causal

KIND = DpBitfit()
CHAT = b'{"messages": [{"role": "user", "content": "who %d"}, {"role": "assistant", "content": "%s"}]}\n'


def rows(count: int = 24) -> Rows:
    return parse_rows(b"".join(CHAT % (i, (b"good", b"bad")[i % 2]) for i in range(count)))


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("writer")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(MINILM_TOKENIZER.verified()), pad_token="[PAD]", eos_token="[SEP]"
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=30522,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the pooler that is not used."""
    return save_encoder(tmp_path_factory.mktemp("encoder"), layers=1, seed=3, pooler=True)


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With fewer positions than a text has tokens; the first is behind the padding's."""
    folder = tmp_path_factory.mktemp("roberta")
    return save_encoder(folder, layers=1, seed=3, pooler=False, family="roberta", positions=20)


def work(base: Path, folder: Path, taken: list[int], stop_at: int = 10**6) -> Work:
    labels = () if is_causal(base) else ("bad", "good")
    settings = {"steps": 6, "batch_size": 8, "epsilon": 6.0, "delta": 1e-3, "max_length": 24}
    plan = KIND.plan(settings, Facts(24, labels, 1e-3, base))
    told: list[Mapping[str, Any]] = []

    def should_stop() -> bool:
        return bool(taken) and taken[-1] + 1 >= stop_at

    return Work(
        method="dp_bitfit",
        config=plan.config,
        base=base,
        labels=labels,
        rows=rows(),
        public=rows(6),
        seed=1,
        folder=folder,
        should_stop=should_stop,
        take=taken.append,
        emit=lambda message, kind, data: told.append(data),
    )


@pytest.mark.parametrize("name", ["writer", "encoder", "roberta"])
def test_a_run_is_resumed_saved_and_asked(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    base: Path = request.getfixturevalue(name)
    taken: list[int] = []
    first = work(base, tmp_path, taken, stop_at=4)
    assert KIND.run(first) is None
    result = KIND.run(work(base, tmp_path, taken))
    assert taken == [0, 1, 2, 3, 4, 5]  # each step once, counted over both runs
    assert result is not None
    package, card = result.files
    (entry,) = read_card(package)["history"]  # what ran is what was priced
    q = first.config["run"]["expected_batch"] / first.config["run"]["dataset_size"]
    assert (entry["rate"], entry["steps"]) == (q, 6) == (8 / 24, 6)
    assert entry["noise_multiplier"] == first.config["run"]["noise_multiplier"]
    # Of the writer most is one bias for each word of the vocabulary.
    assert package.stat().st_size < 150_000 and "differential privacy" in card.read_text()
    tuned = KIND.load(package, base, Nowhere())
    answer = tuned.answer([{"role": "user", "content": "who 3"}], {"max_tokens": 4})
    if name != "writer":
        tuned.answer([{"role": "user", "content": "who " * 100}], {})  # cut to what fits
        assert answer.text in ("good", "bad") and set(answer.scores) == {"good", "bad"}
        assert set(result.facts) >= {"valid_accuracy", "valid_loss"}
    else:
        assert 0 < answer.completion_tokens <= 4 and not answer.scores
        assert set(result.facts) >= {"valid_loss"} and "valid_accuracy" not in result.facts
    again = tuned.answer([{"role": "user", "content": "who 3"}], {"max_tokens": 4})
    assert again == answer
    if name != "writer":
        with pytest.raises(Unanswerable):
            tuned.answer([{"role": "assistant", "content": "who 3"}], {})
        return
    cut = tuned.answer([{"role": "user", "content": "who " * 50}], {"max_tokens": 10**6})
    assert cut.is_cut and cut.prompt_tokens + cut.completion_tokens == 64
    with pytest.raises(Unanswerable, match="takes 64"):
        tuned.answer([{"role": "user", "content": "who " * 100}], {})


def strict(writer: Path, tmp_path: Path) -> Path:
    """A writer whose chat template takes no system message."""
    base = shutil.copytree(writer, tmp_path / "strict")
    settings = json.loads((base / "tokenizer_config.json").read_text())
    settings["chat_template"] = (
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}"
        "{% endif %}{{ m.content }}\n{% endfor %}"
    )
    (base / "tokenizer_config.json").write_text(json.dumps(settings))
    return base


def test_roles_that_a_template_refuses_are_told(writer: Path, tmp_path: Path) -> None:
    base = strict(writer, tmp_path)
    result = KIND.run(work(base, tmp_path, []))
    assert result is not None
    tuned = KIND.load(result.files[0], base, Nowhere())
    asked = {"role": "user", "content": "who 3"}
    assert tuned.answer([asked], {"max_tokens": 2}).completion_tokens
    with pytest.raises(Unanswerable, match="roles"):
        tuned.answer([{"role": "system", "content": "who"}, asked], {})


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
@pytest.mark.parametrize("name", ["writer", "encoder"])
def test_a_run_uses_the_accelerator_in_bf16(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    base: Path = request.getfixturevalue(name)
    job = work(base, tmp_path, [])
    job.config["run"]["autocast"] = "bf16"
    torch.cuda.reset_peak_memory_stats()
    result = KIND.run(job)
    assert result is not None and torch.cuda.max_memory_allocated() > 0
    answer = KIND.load(result.files[0], base, Nowhere()).answer(
        [{"role": "user", "content": "who 3"}], {}
    )
    assert answer.text or name == "writer"


def test_a_conversation_longer_than_a_writers_positions_is_cut(
    writer: Path, tmp_path: Path
) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    base = tmp_path / "gpt2"
    config = GPT2Config(vocab_size=30522, n_embd=16, n_layer=1, n_head=2, n_positions=16)
    GPT2LMHeadModel(config).save_pretrained(base)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(writer / name, base / name)
    assert is_causal(base)
    long = parse_rows(CHAT % (0, b"good " * 100))
    result = KIND.run(replace(work(base, tmp_path, []), rows=long, public=long))
    assert result is not None and result.facts["valid_loss"] > 0


def test_rows_that_cannot_be_learned_are_told_before_a_step(writer: Path, tmp_path: Path) -> None:
    taken: list[int] = []
    before = (
        b'{"messages": [{"role": "user", "content": "%s"}, {"role": "assistant", "content": "y"}]}'
    )
    with pytest.raises(MethodError, match="max_length"):
        KIND.run(replace(work(writer, tmp_path, taken), rows=parse_rows(before % (b"who " * 50))))
    base = strict(writer, tmp_path)
    system = b'\n{"messages": [{"role": "system", "content": "Oberhuber"}, ' + before[14:] % b"who"
    with pytest.raises(MethodError, match="line 2: .* roles") as caught:
        KIND.run(replace(work(base, tmp_path, taken), rows=parse_rows(system)))
    assert "Oberhuber" not in str(caught.value) and not taken
