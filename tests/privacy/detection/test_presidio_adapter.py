"""The adapter reaches presidio's patterns without its NLP stack and leaves the process clean."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from privacy.detection.presidio import PresidioUnavailable, load_class

CARD = "predefined_recognizers.generic.credit_card_recognizer"


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_recognizer_validates() -> None:
    recognizer = load_class(CARD, "CreditCardRecognizer")()
    (result,) = recognizer.analyze("pay 4111 1111 1111 1111 now", ["CREDIT_CARD"])
    assert (result.start, result.end, result.score) == (4, 23, 1.0)


def test_loading_all_recognizers_imports_neither_torch_nor_spacy_nor_the_package() -> None:
    code = (
        "import sys, time; t = time.process_time()\n"
        "from privacy.detection.engine import Detector\n"
        "from privacy.detection.registry import default_recognizers\n"
        "Detector(default_recognizers(), None).detect(["
        "'card 4111 1111 1111 1111, IBAN DE89 3704 0044 0532 0130 00, NIF 12345678Z, NHS 943 476 5919'])\n"
        "heavy = {'torch', 'spacy', 'thinc', 'presidio_analyzer', 'tldextract', 'transformers'}\n"
        "print(sorted(heavy & {name.split('.')[0] for name in sys.modules}), time.process_time() - t < 3)"
    )
    assert run(code) == "[] True"


def test_the_real_package_can_still_be_imported_afterwards_in_the_same_process() -> None:
    code = (
        "from privacy.detection.presidio import load_class\n"
        f"mine = load_class({CARD!r}, 'CreditCardRecognizer')\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "import spacy, presidio_analyzer\n"
        f"from presidio_analyzer.{CARD} import CreditCardRecognizer\n"
        "print(len(CreditCardRecognizer().analyze('4111 1111 1111 1111', ['CREDIT_CARD'])), "
        "len(mine().analyze('4111 1111 1111 1111', ['CREDIT_CARD'])), mine is CreditCardRecognizer)"
    )
    assert run(code) == "1 1 False"


def test_threads_get_one_class() -> None:
    with ThreadPoolExecutor(8) as pool:
        classes = list(pool.map(lambda _: load_class(CARD, "CreditCardRecognizer"), range(32)))
    assert len(set(classes)) == 1


@pytest.mark.parametrize(
    ("module", "name"),
    [("no.such_module", "X"), (CARD, "NoSuchRecognizer")],
)
def test_what_is_missing_is_named(module: str, name: str) -> None:
    with pytest.raises(PresidioUnavailable, match="presidio"):
        load_class(module, name)
