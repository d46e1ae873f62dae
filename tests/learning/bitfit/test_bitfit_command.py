"""What ``python -m learning.bitfit`` says to a job that it cannot run."""

import sys
from pathlib import Path

import pytest

from learning.bitfit import __main__ as command


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "job.json: No such file or directory"),
        ("{", "job.json: Invalid JSON"),
        ('{"model": "m", "data": 7, "output": "o", "run": {}}', "data: Input is not a valid path"),
    ],
)
def test_the_command_tells_what_to_mend(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: str | None,
    told: str,
) -> None:
    file = tmp_path / "job.json"
    if content is not None:
        file.write_text(content)
    monkeypatch.setattr(sys, "argv", ["bitfit", str(file)])
    monkeypatch.setattr(command.signal, "signal", lambda *_: None)
    assert command.main() == 1
    out, err = capsys.readouterr()
    assert out == "" and told in err and err.count("\n") == 1
    assert "Errno" not in err and "pydantic" not in err and "input_value" not in err
