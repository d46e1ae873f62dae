"""What lies in a job's folder, and for how long."""

from pathlib import Path

from gateway.jobs.folder import JobFolder


def test_rows_whose_writing_was_cut_off_are_removed_too(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path, "ftjob-1")
    folder.path.mkdir()
    for name in ("data.jsonl", ".data.jsonl", "public.jsonl", ".public.jsonl"):
        (folder.path / name).write_bytes(b"Oberhuber")
    folder.remove_rows()
    assert list(folder.path.iterdir()) == []
