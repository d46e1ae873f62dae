"""`penname ppft` from export to an answer, by its own commands, with tiny models."""

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ppft_tiny import decoder_folder, encoder_folder
from typer.testing import CliRunner

from gateway.cli.console import CommandError
from gateway.cli.main import app
from gateway.cli.ppft_run import model_folder
from gateway.settings import Settings
from learning.ppft.artefact import read_card
from store.ledger import Ledger

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ppft")
    decoder_folder(made / "decoder")
    encoder_folder(made / "tiny-bert")
    lines = [
        {"task": "sentiment", "context": f"the film is very {word}", "answer": answer}
        for word, answer in (("good", "positive"), ("bad", "negative"), ("fine", "positive"))
    ]
    lines.append({"question": "what is it", "options": ["A. flu", "B. cold"], "answer": "B"})
    (made / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return made


def run(*args: object) -> str:
    result = CliRunner().invoke(app, ["ppft", *map(str, args)], catch_exceptions=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def export(folder: Path, out: str, *more: object) -> str:
    return run(
        "export", "--records", folder / "records.jsonl", "--encoder", folder / "tiny-bert",
        "--k", 2, "--out", folder / out, *more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def trained(folder: Path) -> Path:
    export(folder, "public", "--public")
    export(folder, "private", "--epsilon", 30, "--data-dir", folder / "gateway")
    common = ("--decoder", folder / "decoder", "--steps", 2, "--batch", 2)
    run("train", "--stage", 1, "--data", folder / "public", "--out", folder / "one", *common)
    run(
        "train", "--stage", 2, "--data", folder / "private", "--base", folder / "one",
        "--public", folder / "public", "--out", folder / "two", *common,
    )  # fmt: skip
    return folder


def test_export_charges_every_record_before_it_is_written(trained: Path) -> None:
    from gateway.bootstrap import open_database

    db = open_database(Settings(data_dir=trained / "gateway"))
    try:
        rows = Ledger(db).rows("default", accounts=["ppft"])
        assert Ledger(db).rows("default", accounts=["entity"]) == []
    finally:
        db.close()
    manifest = json.loads((trained / "private" / "manifest.json").read_text())
    assert manifest["meta"]["epsilon"] == 30.0 and not manifest["meta"]["public"]
    # Five words, k = 2: three slots at 2ε each; the last has three words and two options.
    assert [row.epsilon for row in rows][:3] == [180.0] * 3
    assert {row.metric for row in rows} == {"euclidean"}
    assert len({row.entity_hmac for row in rows}) == 4
    assert not (trained / "private" / "windows.jsonl").exists()
    assert (trained / "public" / "windows.jsonl").exists()


def test_training_leaves_a_card_and_its_progress(trained: Path) -> None:
    card = json.loads((trained / "two" / "card.json").read_text())["card"]
    assert (card["stage"], card["steps"], card["epsilon"]) == (2, 4, 30.0)
    assert card["encoder"] == "tiny-bert" and card["k"] == 2
    events = (trained / "two.events.jsonl").read_text().splitlines()
    assert json.loads(events[-1])["event"] == "done"


def test_the_shipped_model_has_a_name(folder: Path) -> None:
    assert read_card(model_folder("ppft-intent")).corpora == ("medquad_intent",)
    assert model_folder(str(folder)) == folder


def test_mistakes_are_told_with_their_mend(folder: Path, trained: Path) -> None:
    def fails(match: str, *args: object) -> None:
        with pytest.raises(Exception, match=match):
            run(*args)

    fails("name a --corpus", "export", "--out", folder / "x")
    fails("needs --data", "export", "--corpus", "sst2", "--out", folder / "x",
          "--encoder", folder / "tiny-bert")  # fmt: skip
    fails("gpu9 is no device", "export", "--corpus", "sst2", "--out", folder / "x", "--data", folder,
          "--encoder", folder / "tiny-bert", "--device", "gpu9")  # fmt: skip
    fails("unknown corpus", "export", "--corpus", "nope", "--out", folder / "x", "--data", folder,
          "--encoder", folder / "tiny-bert")  # fmt: skip
    bad = folder / "bad.jsonl"
    bad.write_text('{"question": "what"}\n')
    fails("bad.jsonl:1: has no field 'answer'", "export", "--records", bad, "--out", folder / "x",
          "--encoder", folder / "tiny-bert")  # fmt: skip
    bad.write_text("no JSON\n")
    fails("bad.jsonl:1: is not JSON", "export", "--records", bad, "--out", folder / "x",
          "--encoder", folder / "tiny-bert")  # fmt: skip
    for epsilon in (0, "inf", "nan"):
        with pytest.raises(CommandError, match="epsilon"):
            run("export", "--records", bad, "--out", folder / "x", "--epsilon", epsilon)
    fails("needs --base", "train", "--stage", 2, "--data", folder / "private",
          "--out", folder / "y", "--decoder", folder / "decoder")  # fmt: skip
    fails("no dataset", "train", "--stage", 1, "--data", folder / "gone", "--out", folder / "y")
    fails("public dataset", "train", "--stage", 1, "--data", folder / "private",
          "--out", folder / "y", "--decoder", folder / "decoder")  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PENNAME_PPFT_KEYS", raising=False)
        with pytest.raises(CommandError, match="PENNAME_PPFT_KEYS"):
            run("serve", "--model", f"m={folder / 'two'}", "--decoder", folder / "decoder")


@pytest.fixture(scope="module")
def server(trained: Path) -> Iterator[str]:
    """The server in a process of its own, as an operator runs it."""
    environment = {**os.environ, "PENNAME_PPFT_KEYS": "k1,k2", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(ROOT)
    command = [
        sys.executable, "-m", "gateway.cli.main", "ppft", "serve", "--port", "0",
        "--model", f"tiny={trained / 'two'}", "--decoder", str(trained / "decoder"),
    ]  # fmt: skip
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    seen: list[str] = []

    def read() -> None:
        seen.extend(iter(process.stderr.readline, ""))  # type: ignore[union-attr]

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    deadline = time.monotonic() + 120
    try:
        while not (found := re.search(r"http://[\d.]+:\d+", "".join(seen).replace("\n", ""))):
            assert process.poll() is None and time.monotonic() < deadline, seen
            time.sleep(0.05)
        yield found[0]
    finally:
        process.terminate()
        process.wait(30)
        reader.join(10)
        process.stderr.close()


def test_a_served_model_answers_the_command_line(
    trained: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENNAME_PPFT_KEYS", "k2")
    said = run(
        "ask", "the film is good", "--server", server, "--model", "tiny", "--k", 2,
        "--task", "sentiment", "--encoder", trained / "tiny-bert", "--epsilon", 30,
    )  # fmt: skip
    assert "2 rows" in said and "ε 60 a row, 120 in all" in said

    def fails(match: str, model: str = "tiny", *, at: str = server, **options: object) -> None:
        more = [part for name, value in options.items() for part in (f"--{name}", value)]
        with pytest.raises(CommandError, match=match):
            run("ask", "x good", "--server", at, "--model", model,
                "--encoder", trained / "tiny-bert", *more)  # fmt: skip

    fails("no model of this name.*Mend --model", "other", k=2)
    fails("another encoder or k.*Mend --model, --k", k=1)
    fails("unknown task 'x'; the tasks are answer", task="x")
    fails(
        "nothing answers at http://127.0.0.1:9; start `penname ppft serve`", at="http://127.0.0.1:9"
    )
    monkeypatch.setenv("PENNAME_PPFT_KEYS", "wrong")
    fails("refuses the key .HTTP 401.; set PENNAME_PPFT_KEYS", k=2)


def test_the_gateway_offers_the_model_as_an_ordinary_one(
    trained: Path, server: str, tmp_path: Path
) -> None:
    """Chat completions through the whole gateway, plain and streamed, with the official client."""
    import socket

    import uvicorn
    from openai import OpenAI

    from connectors.router import LiteLlmParams, ModelEntry
    from gateway.app import create_app
    from gateway.bootstrap import build_pipeline, build_services
    from gateway.config import ServerConfig

    services = build_services(Settings(data_dir=tmp_path / "data"))
    services.tenants.ensure("acme")
    key, _ = services.keys.create("client", "acme")
    params = LiteLlmParams(
        model="ppft/tiny", api_base=server, api_key="k1", k=2, encoder=str(trained / "tiny-bert")
    )
    config = ServerConfig(model_list=[ModelEntry(model_name="ppft/tiny", litellm_params=params)])
    gateway = create_app(services, build_pipeline(services, config))
    sock = socket.socket(proto=socket.IPPROTO_TCP)
    sock.bind(("127.0.0.1", 0))
    running = uvicorn.Server(uvicorn.Config(gateway, log_config=None, access_log=False))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.02)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/v1"
    try:
        with OpenAI(base_url=url, api_key=key, max_retries=0) as client:
            messages = [{"role": "user", "content": "what is the weather"}]
            assert "ppft/tiny" in [model.id for model in client.models.list()]
            whole = client.chat.completions.create(
                model="ppft/tiny",
                messages=messages,
                max_tokens=5,  # type: ignore[arg-type]
            )
            assert (
                whole.object == "chat.completion" and whole.choices[0].message.content is not None
            )
            assert whole.usage is not None and whole.usage.completion_tokens <= 5
            chunks = list(
                client.chat.completions.create(
                    model="ppft/tiny",
                    messages=messages,
                    max_tokens=5,
                    stream=True,  # type: ignore[arg-type]
                )
            )
            assert chunks[-1].choices[0].finish_reason in ("stop", "length")
    finally:
        running.should_exit = True
        thread.join(15)
        sock.close()
        services.workers.shutdown(wait=True)
        services.db.close()


def test_the_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from gateway.cli.main import app; "
        "assert CliRunner().invoke(app, ['ppft', '--help']).exit_code == 0; "
        "heavy = {'torch', 'transformers', 'peft', 'onnxruntime', 'scipy', 'numpy'} & set(sys.modules); "
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
