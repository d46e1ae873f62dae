"""Giving up long work in the middle: the caller says when, the loops of this package ask.

Detection of a long text takes as long as it takes, in a thread that nobody can stop from outside.
So its loops call `checkpoint`, and whoever started the work decides there whether it goes on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_check: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


class Interrupted(BaseException):
    """The work was given up.  Not an ``Exception``: no handler of failures may swallow it."""


@contextmanager
def interruptible(check: Callable[[], None]) -> Iterator[None]:
    """Let ``check`` raise `Interrupted` at the checkpoints of this thread."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def checkpoint() -> None:
    """Raise `Interrupted` when the work that this thread does is no longer wanted."""
    check = _check.get()
    if check is not None:
        check()
