"""The privacy budgets of a data set, one an account, each over all jobs on it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.settings import Settings
from learning.methods.base import Method
from privacy.ppft.accounting import ACCOUNT as PPFT
from privacy.ppft.accounting import DELTA
from store.job_rows import History


class BudgetExceeded(Exception):
    """The data set cannot be trained that far; the message gives the figures."""


@dataclass(frozen=True)
class Budget:
    """What one data set may cost in one account.

    Attributes:
        epsilon: In the account's unit.
        delta: δ that the budget holds at.
        advice: What costs less.
    """

    epsilon: float
    delta: float
    advice: str


def budget_of(method: Method, settings: Settings) -> Budget:
    """Return the budget of a method's account."""
    if method.account == PPFT:
        advice = (
            "Lower epsilon or max_slots, which leaves out the longest records; leave out rows that repeat "
            "a text, because each of them is noised"
        )
        return Budget(settings.ppft_training_epsilon, DELTA, advice)
    advice = "Lower epsilon, the number of steps, or a delta above the budget's"
    return Budget(settings.training_epsilon, settings.training_delta, advice)


def budget_check(method: Method, settings: Settings) -> Callable[[Sequence[History]], None]:
    """Return the check that histories on one data set stay within the budget of a method's account.

    Steps of all jobs are composed as the method composes them, at the budget's δ, which is no more than
    the sum of the jobs' own ε.
    """
    budget = budget_of(method, settings)

    def check(histories: Sequence[History]) -> None:
        total = method.epsilon(histories, budget.delta)
        if total <= budget.epsilon:
            return
        before = method.epsilon(histories[:-1], budget.delta)
        raise BudgetExceeded(
            f"This data set has {max(0.0, budget.epsilon - before):.4g} of its privacy budget of epsilon "
            f"{budget.epsilon:g} (account {method.account}, delta {budget.delta:g}) left, and with this "
            f"job {total:.6g} would be spent. {budget.advice}; or use other data."
        )

    return check


def cost_of(method: Method, delta: float) -> Callable[[Sequence[Mapping[str, Any]]], float]:
    """Return the price of one history at ``delta``."""
    return lambda history: method.epsilon([history], delta)
