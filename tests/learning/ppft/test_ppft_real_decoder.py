"""SmolLM2 converted from its GGUF file: sensible text, and llama.cpp's own token counts."""

import json
from pathlib import Path

import pytest

from connectors.weights import CHAT_MODEL, cache_folder, chat_model_gguf
from learning.ppft.decoder import Decoder, DecoderError, convert_gguf, load_decoder
from learning.ppft.generate import answers
from learning.ppft.model import Example, PpftModel
from privacy.ppft.tasks import Task

TEXTS = (
    "Hello wörld, 12345 o'clock!\n\n  He said: \"it's 3.5%\" \U0001f600",
    "What's the patient's   diagnosis?\tI don't know.",
    "x=1;  if(y){return 2024;}\r\n",
    "汉字と日本語 naïve café",
)


@pytest.fixture(scope="module")
def smollm() -> Decoder:
    return load_decoder(convert_gguf(chat_model_gguf(), cache_folder(), CHAT_MODEL.sha256))


@pytest.mark.slow
def test_the_converted_model_writes_sense(smollm: Decoder) -> None:
    import numpy as np

    model = PpftModel.create(smollm, 4, None)
    text = "user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant"
    found = answers(model, [Example(np.zeros((0, 4), np.float32), Task.ANSWER, text=text)], 12)
    assert "Paris" in found[0]
    assert (smollm.bos, smollm.eos) == (1, 2)


@pytest.mark.slow
def test_the_tokenizer_is_that_of_the_file(smollm: Decoder) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(chat_model_gguf())
    params.n_ctx = 512
    params.warmup = False
    params.verbosity = -1
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    for text in TEXTS:
        out: list[str] = []
        request = json.dumps({"prompt": text, "n_predict": 1, "temperature": 0})
        server.handle_completions(request, lambda raw, out=out: out.append(raw) or False)  # type: ignore[misc]
        ids = smollm.ids(text)
        assert json.loads(out[0])["usage"]["prompt_tokens"] == len(ids)
        assert smollm.text(ids) == text


def test_other_files_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DecoderError, match="can not be loaded"):
        load_decoder(tmp_path / "nothing")
