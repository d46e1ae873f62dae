"""What the planner is told to do: one rule per entity type, compiled from a policy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from privacy.mechanisms.base import Mechanism

Action = Literal[
    "substitute", "surrogate", "placeholder", "redact", "mask", "hash", "allow", "block"
]
PoolRule = Literal["enlarge", "numbered", "generic", "block"]
BudgetRule = Literal["block", "placeholder", "route"]


class SubstitutionError(Exception):
    """A request cannot be sanitised as the policy asks; nothing was charged."""


class PolicyBlocked(SubstitutionError):
    """The policy forbids sending an entity type."""

    def __init__(self, entity_type: str) -> None:
        super().__init__(f"The policy does not let values of type {entity_type} leave.")
        self.entity_type = entity_type


class BudgetExhausted(SubstitutionError):
    """The next draw would overspend the session's privacy budget."""

    def __init__(self, spent: float, budget: float, needed: float) -> None:
        super().__init__(
            f"The session's privacy budget is exhausted: ε spent {spent:.3f} of {budget:.3f}, "
            f"the next draw needs {needed:.3f}. Start a new session or raise the policy's budget."
        )


class PoolBlocked(SubstitutionError):
    """A pool has no candidate left and the policy says to block."""

    def __init__(self, fine_type: str) -> None:
        super().__init__(f"The pool {fine_type} has no candidate left in this session.")


@dataclass(frozen=True, slots=True)
class Rule:
    """How one coarse type is treated.  ``mechanism`` is set for action ``substitute``."""

    action: Action
    mechanism: Mechanism | None = None


@dataclass(frozen=True, slots=True)
class Ruleset:
    """All rules of one policy, as the planner needs them.

    Attributes:
        rules: Rule per coarse type; a type without a rule is replaced by a numbered placeholder.
        session_epsilon: Budget of the session (basic composition), None for no limit.
        session_delta: Likewise for δ.
        date_epsilon: ε per day of the session's date shift.
        on_budget: What happens when a draw would overspend; for ``route`` the planner raises as for
            ``block``, and the caller sends the request where no text is seen.
        on_pool: What happens when a pool has no candidate left.
        allow: Case-folded strings that are never treated as entities.
    """

    rules: Mapping[str, Rule]
    session_epsilon: float | None = None
    session_delta: float | None = None
    date_epsilon: float = 0.1
    on_budget: BudgetRule = "block"
    on_pool: PoolRule = "numbered"
    allow: frozenset[str] = field(default_factory=frozenset)

    def rule(self, entity_type: str) -> Rule:
        return self.rules.get(entity_type, Rule("placeholder"))
