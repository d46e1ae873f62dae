"""Tiny models for jobs of the method ppft: an encoder, a decoder, and a PPFT model of stage 1 on it."""

import json
from pathlib import Path

from ppft_tiny import DIMENSIONS, decoder_folder, encoder_folder

ENCODER, DECODER, BASE = "tiny-words", "tiny-decoder", "tiny-ppft"
GOOD, BAD = ("good", "great", "fine", "warm"), ("bad", "poor", "dull", "cold")
CANARY = "Oberhuber"


def save_models(folder: Path) -> None:
    """Write the three models; the PPFT model's window is 2."""
    import torch

    from learning.ppft import artefact
    from learning.ppft.decoder import load_decoder
    from learning.ppft.model import Lora, PpftModel

    encoder_folder(folder / ENCODER)
    decoder = load_decoder(decoder_folder(folder / DECODER))
    torch.manual_seed(5)
    lora = Lora(r=4, alpha=8)
    model = PpftModel.create(decoder, DIMENSIONS, lora)
    card = artefact.Card(ENCODER, DIMENSIONS, 2, DECODER, steps=1, lora=lora)
    artefact.save(model, card, folder / BASE)


def films(count: int = 24, salt: str = "") -> bytes:
    """Classification rows; the canary stands in the texts only."""
    lines = []
    for i in range(count):
        words, label = ((GOOD, "positive"), (BAD, "negative"))[i % 2]
        text = f"{CANARY} the film is very {words[i % 4]} {salt}{i}"
        lines.append({"text": text, "label": label})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def chats(count: int = 12) -> bytes:
    """Conversations with a system message."""
    lines = []
    for i in range(count):
        turns = [("system", "a film"), ("user", f"what is it {CANARY}"), ("assistant", "fine")]
        messages = [{"role": role, "content": text} for role, text in turns[i % 2 :]]
        lines.append({"messages": messages})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()
