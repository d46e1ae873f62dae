"""The processes of one job: rank 0 is the worker, it starts the others, and they end together.

Every other rank holds a pipe from rank 0 and ends when that closes, however rank 0 came to its end; rank 0
ends when one of them dies.  Only rank 0 obeys signals and writes to the job's folder, but for the report
of a fault.  What the ranks exchange stays on the loopback interface, because sums travel there before the
noise is in them.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

Process = subprocess.Popen[bytes]
_RENDEZVOUS: Final = ".rendezvous"
_GRACE_SECONDS: Final = 5.0


class GroupError(RuntimeError):
    """The processes cannot work together; the message says what to change."""


class Group:
    """The other ranks of a job.

    Args:
        folder: The job's folder.
        processes: How many ranks there are, this one included.
        rows: What the others read instead of a file.
    """

    def __init__(self, folder: Path, processes: int, rows: bytes) -> None:
        self._closing = False
        (folder / _RENDEZVOUS).unlink(missing_ok=True)  # a run that died left its own
        self._children = [_start(folder, rank, len(rows)) for rank in range(1, processes)]
        for child, pipe in self._children:
            look = threading.Thread(target=self._look_after, args=(child, pipe, rows), daemon=True)
            look.start()

    def close(self) -> None:
        """End the others and wait until they are gone."""
        self._closing = True
        for _, pipe in self._children:
            with suppress(OSError):
                pipe.close()
        for child, _ in self._children:
            try:
                child.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def _look_after(self, child: Process, pipe: BinaryIO, rows: bytes) -> None:
        with suppress(OSError, ValueError):  # it died, or the group was closed before it had read
            pipe.write(rows)
            pipe.flush()
        if child.wait() == 0 or self._closing:
            return
        # Rank 0 may have met the same fault and be about to tell it.
        time.sleep(_GRACE_SECONDS)
        if not self._closing:
            os._exit(1)


def _start(folder: Path, rank: int, size: int) -> tuple[Process, BinaryIO]:
    command = [sys.executable, "-P", "-m", "learning.worker", str(folder), str(rank), str(size)]
    read, write = os.pipe()
    try:
        with _signals_blocked():
            child = subprocess.Popen(command, stdin=read)  # noqa: S603  (ourselves)
    finally:
        os.close(read)
    return child, os.fdopen(write, "wb")


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Children inherit the mask, so that a signal to the whole group reaches rank 0 alone."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def rows_from_rank_0(size: int) -> bytes:
    """Return the rows, in another rank; from now on it ends with rank 0."""
    rows = sys.stdin.buffer.read(size)
    threading.Thread(target=_end_with_rank_0, daemon=True).start()
    return rows


def _end_with_rank_0() -> None:
    os.read(0, 1)
    os._exit(1)


def join(folder: Path, rank: int, processes: int) -> None:
    """Join the process group: gloo, or nccl with one GPU a process.

    Raises:
        GroupError: There are fewer GPUs than processes.
    """
    import torch
    from torch import distributed as dist

    gpu = torch.cuda.is_available()
    if gpu and torch.cuda.device_count() < processes:
        raise GroupError(
            f"PENNAME_JOB_PROCESSES is {processes} and {torch.cuda.device_count()} GPUs can be seen; "
            "every process needs one (on Ray PENNAME_JOB_GPUS is the number for each)"
        )
    if gpu:
        torch.cuda.set_device(rank)
    if sys.platform == "linux":
        os.environ.update(GLOO_SOCKET_IFNAME="lo", NCCL_SOCKET_IFNAME="lo")
    store = dist.FileStore(  # type: ignore[attr-defined]
        str(folder / _RENDEZVOUS), processes
    )
    dist.init_process_group("nccl" if gpu else "gloo", store=store, rank=rank, world_size=processes)
