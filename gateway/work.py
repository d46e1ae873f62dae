"""Blocking work in the gateway's own worker threads."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

from gateway.deadline import Deadline
from gateway.errors import too_late

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def in_worker(workers: ThreadPoolExecutor, work: Callable[[*Ts], T], *args: *Ts) -> T:
    """Run ``work(*args)`` in a worker thread and return what it returns."""
    return await asyncio.get_running_loop().run_in_executor(workers, lambda: work(*args))


async def in_worker_until(
    deadline: Deadline, workers: ThreadPoolExecutor, work: Callable[[*Ts], T], *args: *Ts
) -> T:
    """Run ``work(*args)`` like `in_worker`, waiting no longer than the deadline allows.

    The thread itself is not stopped: it gives up at its next checkpoint.

    Raises:
        ApiError: 503 when the time is over and the work was given up.
    """
    running = asyncio.ensure_future(in_worker(workers, work, *args))
    try:
        await asyncio.wait((running,), timeout=deadline.remaining())
        if not running.done() and deadline.cancel():
            raise too_late()
        return await running
    finally:
        # Also when the client went away: a request still in the queue is then never begun.
        running.cancel()
