"""Blocking work in the gateway's own worker threads."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def in_worker(workers: ThreadPoolExecutor, work: Callable[[*Ts], T], *args: *Ts) -> T:
    """Run ``work(*args)`` in a worker thread and return what it returns."""
    return await asyncio.get_running_loop().run_in_executor(workers, lambda: work(*args))
