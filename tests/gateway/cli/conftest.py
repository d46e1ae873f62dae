"""Running `penname` in this process, as the entry point does."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def penname(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Run:
    """Return a function of arguments to (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)
    for name in ("CONFIG", "DATA_DIR", "DATABASE_URL", "MASTER_KEY", "PORT", "LOG_LEVEL"):
        monkeypatch.delenv(f"PENNAME_{name}", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["penname", *arguments])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return run
