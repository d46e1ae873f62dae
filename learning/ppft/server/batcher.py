"""Concurrent requests answered together: one thread, one bounded queue, batches as they come."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from learning.ppft.generate import Sampling, Step, generate
from learning.ppft.model import Example, PpftModel

_log = logging.getLogger(__name__)
Emit = Callable[[Step | None], None]


class QueueFull(Exception):
    """No place in the queue.

    Attributes:
        retry_after: Seconds after which a place is likely.
    """

    def __init__(self, retry_after: int) -> None:
        super().__init__("the queue is full")
        self.retry_after = retry_after


@dataclass(eq=False)
class Job:
    """One request on its way.

    Attributes:
        example: Rows and task.
        sampling: Tokens and temperature.
        emit: Receives each step, from the batcher's thread; None when the model failed.
        gone: Set when nobody waits for the answer any more.
    """

    example: Example
    sampling: Sampling
    emit: Emit
    gone: threading.Event = field(default_factory=threading.Event)


class Batcher:
    """Runs a model in a thread of its own.

    Args:
        model: What answers.
        batch: Most requests answered together.
        waiting: Places in the queue; beyond them `submit` raises.
        gather: Seconds to wait for company once a first request is there.
    """

    def __init__(
        self, model: PpftModel, batch: int = 16, waiting: int = 64, gather: float = 0.005
    ) -> None:
        self._model = model
        self._most = batch
        self._gather = gather
        self._queue: queue.Queue[Job | None] = queue.Queue(waiting)
        self._seconds = 1.0  # running mean of a batch
        self._thread = threading.Thread(target=self._work, name="ppft-batcher", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Queue a job.  Raises QueueFull."""
        try:
            self._queue.put_nowait(job)
        except queue.Full:
            batches = self._queue.maxsize / self._most + 1
            raise QueueFull(max(1, round(batches * self._seconds))) from None

    def close(self) -> None:
        """Finish what is queued and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            jobs, last = self._collect()
            alive = [job for job in jobs if not job.gone.is_set()]
            if alive:
                began = time.monotonic()
                self._answer(alive)
                self._seconds += 0.2 * (time.monotonic() - began - self._seconds)
            if last:
                return

    def _collect(self) -> tuple[list[Job], bool]:
        """Return the next batch, and whether it is the last."""
        first = self._queue.get()
        if first is None:
            return [], True
        jobs, deadline = [first], time.monotonic() + self._gather
        while len(jobs) < self._most:
            try:
                job = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return jobs, False
            if job is None:
                return jobs, True
            jobs.append(job)
        return jobs, False

    def _answer(self, jobs: list[Job]) -> None:
        ended: set[int] = set()
        try:
            for step in generate(
                self._model,
                [job.example for job in jobs],
                [job.sampling for job in jobs],
                lambda index: not jobs[index].gone.is_set(),
            ):
                if step.finish is not None:
                    ended.add(step.index)
                jobs[step.index].emit(step)
        except Exception:
            # Whatever the model raised, the thread lives on and each waiting request is told.
            _log.exception("a batch of %d failed", len(jobs))
            for index, job in enumerate(jobs):
                if index not in ended:
                    job.emit(None)
