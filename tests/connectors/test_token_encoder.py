"""Token states: MiniLM against its sentence vectors, and any transformers encoder by folder."""

from pathlib import Path

import numpy as np
import pytest
from ppft_tiny import DIMENSIONS, encoder_folder

from connectors.encoder import MiniLmEncoder
from connectors.token_encoder import HuggingFaceTokens, MiniLmTokens, token_encoder

TEXTS = ["Who signed the supply contract?", "", "Die Klimaanlage \U0001f600 in Basel"]


@pytest.fixture(scope="module")
def minilm() -> MiniLmTokens:
    return MiniLmTokens()


def test_one_state_a_token_and_where_it_stands(minilm: MiniLmTokens) -> None:
    found = minilm.encode(TEXTS)
    assert [len(item.states) for item in found[:2]] == [6, 0]
    words = [TEXTS[0][a:b] for a, b in found[0].offsets]
    assert words == ["Who", "signed", "the", "supply", "contract", "?"]
    assert found[1].states.shape == (0, 384) and found[1].offsets.shape == (0, 2)


def test_states_are_those_behind_the_sentence_vector(minilm: MiniLmTokens) -> None:
    vector = MiniLmEncoder().encode([TEXTS[0]])[0]
    mean = minilm.encode([TEXTS[0]])[0].states.mean(axis=0)
    # The sentence vector also averages the two special tokens.
    assert float(vector @ mean / np.linalg.norm(mean)) > 0.9


def test_order_and_company_do_not_matter(minilm: MiniLmTokens) -> None:
    texts = [f"number {i} " * (i + 1) for i in range(20)]
    together = minilm.encode(texts)
    for index in (0, 7, 19):
        alone = minilm.encode([texts[index]])[0]
        assert np.allclose(alone.states, together[index].states, atol=1e-4)


def test_a_long_text_has_a_state_for_every_token(minilm: MiniLmTokens) -> None:
    (found,) = minilm.encode(["lens scratch " * 300])
    assert found.states.shape[0] == len(found.offsets) >= 600
    assert np.isfinite(found.states).all()


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # by what ModernBERT imports
@pytest.mark.parametrize("family", ["bert", "modernbert", "roberta"])
def test_any_encoder_by_folder(tmp_path: Path, family: str) -> None:
    folder = encoder_folder(tmp_path / "tiny-bert", family)
    encoder = token_encoder(str(folder))
    assert isinstance(encoder, HuggingFaceTokens)
    assert encoder.name == "tiny-bert" and encoder.dimensions == DIMENSIONS
    found = encoder.encode(["the weather is fine", "", "rain " * 70])
    assert [len(item.states) for item in found] == [4, 0, 70]
    assert found[0].offsets.tolist() == [[0, 3], [4, 11], [12, 14], [15, 19]]
    again = encoder.encode(["the weather is fine"])[0].states
    assert np.allclose(again, found[0].states, atol=1e-5)
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder).eval()
    from ppft_tiny import WORDS

    ids = torch.tensor([[2, *(4 + WORDS.index(w) for w in "the weather is fine".split()), 3]])
    with torch.no_grad():
        own = model(input_ids=ids).last_hidden_state[0, 1:-1].numpy()
    assert np.allclose(own, found[0].states, atol=1e-5)


def test_a_missing_encoder_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        token_encoder(str(tmp_path / "nowhere")).encode(["x"])
