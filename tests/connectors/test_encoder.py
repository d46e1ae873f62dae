"""The encoder: shapes, order, long texts, threads, and agreement with the reference."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from connectors.encoder import MiniLmEncoder, SentenceTransformerEncoder
from connectors.weights import MINILM_WEIGHTS

TEXTS = [
    "Who signed the supply contract?",
    "",
    "Die Klimaanlage in Basel wird repariert. \U0001f600",
    "short",
    " ".join(f"The lens number {i} has scratches." for i in range(45)),
]


@pytest.fixture(scope="module")
def encoder() -> MiniLmEncoder:
    return MiniLmEncoder()


def test_rows_are_unit_vectors_in_order(encoder: MiniLmEncoder) -> None:
    rows = encoder.encode(TEXTS)
    assert rows.shape == (5, 384) and rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    for text, row in zip(TEXTS, rows, strict=True):
        assert float(encoder.encode([text])[0] @ row) > 0.99999
    assert encoder.encode([]).shape == (0, 384)


def test_meaning(encoder: MiniLmEncoder) -> None:
    question, near, far = encoder.encode(
        ["Who pays the wages?", "The payroll is run by Nadia.", "The compressor lost refrigerant."]
    )
    assert question @ near > question @ far + 0.2


def test_nothing_of_a_long_text_is_cut_off(encoder: MiniLmEncoder) -> None:
    filler = "The weather was mild and the road was dry. " * 150
    plain, with_end, topic = encoder.encode(
        [filler, filler + "The surgeon operated on the patient's heart. " * 20, "heart surgery"]
    )
    assert topic @ with_end > topic @ plain + 0.05


def test_odd_texts(encoder: MiniLmEncoder) -> None:
    rows = encoder.encode(["\ud800", "\x00", "x" * 100_000, "\u200b", "[SEP] [CLS]"])
    assert np.isfinite(rows).all()


def test_threads_agree(encoder: MiniLmEncoder) -> None:
    expected = encoder.encode(TEXTS)
    results: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: results.append(encoder.encode(TEXTS))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert all(np.allclose(result, expected, atol=1e-6) for result in results)


def test_a_second_start_needs_no_torch(encoder: MiniLmEncoder) -> None:
    code = (
        "import sys; from connectors.encoder import MiniLmEncoder; MiniLmEncoder().encode(['a']);"
        "print([m for m in ('torch', 'transformers', 'sentence_transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_agrees_with_sentence_transformers(encoder: MiniLmEncoder) -> None:
    reference = SentenceTransformerEncoder(str(MINILM_WEIGHTS.verified().parent))
    assert reference.dimensions == 384
    ours, theirs = encoder.encode(TEXTS[:4]), reference.encode(TEXTS[:4])
    assert np.min(np.sum(ours * theirs, axis=1)) > 0.9999
    long_ours, long_theirs = encoder.encode(TEXTS[4:]), reference.encode(TEXTS[4:])
    assert float(long_ours[0] @ long_theirs[0]) > 0.95  # the reference cuts off, ours does not
    assert reference.encode([]).shape == (0, 384)
