"""Nothing that Penname loads reports to its maker."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import socket
def refuse(*args, **named):
    raise AssertionError("somebody asked for a network address")
socket.getaddrinfo = socket.create_connection = refuse
from privacy.detection.ner.tagger import NerTagger
print(NerTagger.load().tag(["Ilse Varga called."])[0][0].type)
"""


def test_the_models_leave_no_trace_in_the_users_home(tmp_path: Path) -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("ORT_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**kept, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "PERSON"
    assert list(tmp_path.iterdir()) == []
