"""The privacy budget of a data set, over all jobs on it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from learning.methods.base import Method
from store.job_rows import History


class BudgetExceeded(Exception):
    """The data set cannot be trained that far; the message gives the figures."""


def budget_check(
    method: Method, epsilon: float, delta: float
) -> Callable[[Sequence[History]], None]:
    """Return the check that histories on one data set stay within a budget.

    All steps of all jobs are composed jointly at the budget's δ, which is less than the sum of the
    jobs' own ε.

    Args:
        method: Knows how its steps compose.
        epsilon: Budget of a data set.
        delta: δ that the budget holds at.
    """

    def check(histories: Sequence[History]) -> None:
        total = method.epsilon(histories, delta)
        if total <= epsilon:
            return
        before = method.epsilon(histories[:-1], delta)
        raise BudgetExceeded(
            f"This data set has {max(0.0, epsilon - before):.4g} of its privacy budget of epsilon "
            f"{epsilon:g} (delta {delta:g}) left, and with this job {total:.4g} would be spent. "
            "Lower epsilon, the number of steps, or a delta above the budget's; or use other data."
        )

    return check


def cost_of(method: Method, delta: float) -> Callable[[Sequence[Mapping[str, Any]]], float]:
    """Return the price of one history at ``delta``."""
    return lambda history: method.epsilon([history], delta)
