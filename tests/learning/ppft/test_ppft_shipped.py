"""The shipped model reads its prefix: noised rows in, the right intent out."""

import pytest
import torch

from connectors.token_encoder import MiniLmTokens
from connectors.weights import CHAT_MODEL, cache_folder, chat_model_gguf
from learning.ppft import artefact
from learning.ppft.decoder import convert_gguf, load_decoder
from learning.ppft.evaluate import accuracy
from learning.ppft.shipped import INTENT
from privacy.ppft.noise import Noise
from privacy.ppft.prompt import Record
from privacy.ppft.rows import obfuscate
from privacy.ppft.tasks import Task
from privacy.randomness import SeededRandomness

ASKED = {
    "What are the treatments for gouty arthritis ?": "treatment",
    "Is brittle bone disease inherited ?": "inheritance",
    "How many people are affected by night blindness ?": "frequency",
    "What are the genetic changes related to hay fever ?": "genetics",
    "What are the symptoms of snow blindness ?": "symptoms",
    "What causes writer's cramp ?": "causes",
    "What is the outlook for tennis elbow ?": "outlook",
    "How to diagnose housemaid's knee ?": "diagnosis",
}


def test_the_card_fits_what_the_code_makes() -> None:
    card = artefact.read_card(INTENT)
    assert (card.encoder, card.dimensions, card.k) == (MiniLmTokens.name, 384, 4)
    assert (card.stage, card.mechanism, card.epsilon) == (2, "laplace", 150.0)
    assert sum(path.stat().st_size for path in INTENT.iterdir()) < 8 * 2**20
    card_text = (INTENT.parent / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in card_text and card.corpora == ("medquad_intent",)


@pytest.mark.slow
def test_intents_come_from_the_rows() -> None:
    torch.set_num_threads(1)
    decoder = load_decoder(convert_gguf(chat_model_gguf(), cache_folder(), CHAT_MODEL.sha256))
    model, card = artefact.load(INTENT, decoder)
    records = [Record(Task.INTENT, question=q, answer=a) for q, a in ASKED.items()] * 2
    noise, random = Noise("laplace", card.epsilon or 0.0), SeededRandomness(0)
    states = MiniLmTokens().encode([record.question for record in records])
    rows = [obfuscate(item.states, card.k, noise, random) for item in states]
    own = accuracy(model, records, rows)
    assert own >= 0.5 and own > accuracy(model, records, rows, "shuffled") + 0.2
    assert accuracy(model, records, rows, "none") <= 0.125
