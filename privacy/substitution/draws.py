"""Every draw of a request passes here: it is charged, checked against the budget, remembered."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from privacy.accounting import Charge
from privacy.mechanisms.base import Draw, Mechanism, PoolExhausted
from privacy.mechanisms.dates import draw_shift
from privacy.mechanisms.exclusions import exclusions, standing_in
from privacy.pools.artefact import PoolSet
from privacy.pools.pool import Pool
from privacy.randomness import Randomness
from privacy.substitution.entry import Entry
from privacy.substitution.memory import Memory
from privacy.substitution.rules import BudgetExhausted, PoolBlocked, Rule, Ruleset

if TYPE_CHECKING:
    from privacy.substitution.planner import SessionContext

_MAX_PLACEHOLDER_TRIES = 10_000
_DAY_SHIFT = "day_shift"
_DOMAINS = "domains"


class Drawer:
    """Draws substitutes for one request and keeps the account."""

    def __init__(
        self,
        ruleset: Ruleset,
        pools: PoolSet,
        rng: Randomness,
        entity_hmac: Callable[[str, str], str],
        memory: Memory,
        session: "SessionContext",
    ) -> None:
        self.ruleset = ruleset
        self.pools = pools
        self.rng = rng
        self._hmac = entity_hmac
        self._memory = memory
        self._epsilon = session.spent_epsilon
        self._delta = session.spent_delta
        self._state: dict[str, Any] = dict(session.state or {})
        self._state_changed = False
        self._standing: dict[tuple[str, int], frozenset[int]] = {}
        #: Surrogate domains of this session: one made-up domain for each of the originals'.
        self.domains: dict[str, str] = dict(self._state.get(_DOMAINS, {}))
        self._domains_before = len(self.domains)

    @property
    def new_state(self) -> Mapping[str, object] | None:
        """The session's small state when this plan changed it, else None."""
        if len(self.domains) > self._domains_before:
            return {**self._state, _DOMAINS: self.domains}
        return self._state if self._state_changed else None

    def from_pool(
        self, fine_type: str, key: str, original: str, entity_type: str, rule: Rule
    ) -> Entry:
        """Draw a name from a pool; when pool or budget ends, do what the policy says.

        Raises:
            BudgetExhausted: the draw would overspend and the policy blocks.
            PoolBlocked: the pool has no candidate left and the policy blocks.
        """
        if rule.mechanism is None:
            raise ValueError(f"the rule for {entity_type} has no mechanism")
        draw = self._draw(fine_type, original, rule.mechanism)
        if draw is None:
            return self._exhausted(fine_type, key, original, entity_type)
        if not self._affordable(draw.epsilon, draw.delta):
            if self.ruleset.on_budget != "placeholder":
                raise BudgetExhausted(
                    self._epsilon, self.ruleset.session_epsilon or 0.0, draw.epsilon
                )
            return self.placeholder(fine_type, key, original, entity_type)
        return self._remember(fine_type, key, original, entity_type, draw)

    def surrogate(
        self, fine_type: str, key: str, original: str, entity_type: str, substitute: str, how: str
    ) -> Entry:
        """Remember a substitute that is independent of the value: ε = 0 beyond the format."""
        return self._free(fine_type, key, original, entity_type, substitute, how)

    def placeholder(self, fine_type: str, key: str, original: str, entity_type: str) -> Entry:
        """Issue the next numbered placeholder that stands nowhere in the session's texts."""
        number = self._number(entity_type)
        return self._free(
            fine_type, key, original, entity_type, f"[{entity_type}_{number}]", "placeholder"
        )

    def constant(
        self, fine_type: str, key: str, original: str, entity_type: str, substitute: str, how: str
    ) -> Entry:
        """Issue a marker that several values share; it can not be restored, and is not."""
        return self._free(fine_type, key, original, entity_type, substitute, how, {"restore": "no"})

    def keyed_hash(self, fine_type: str, key: str) -> str:
        return self._hmac(fine_type, key)

    def day_shift(self) -> int:
        """Return the session's date shift in days, drawing and charging it on first use."""
        known = self._state.get(_DAY_SHIFT)
        if isinstance(known, int):
            return known
        epsilon = self.ruleset.date_epsilon
        shift = draw_shift(epsilon, self.rng, never_zero=True)
        self._state[_DAY_SHIFT] = shift
        self._state_changed = True
        self._memory.charges.append(
            Charge("date", "discrete_laplace", "days", epsilon, 0.0, self._hmac("date", _DAY_SHIFT))
        )
        return shift

    def _draw(self, fine_type: str, original: str, mechanism: Mechanism) -> Draw | None:
        """Draw from the pool, and from its larger public lists where the policy enlarges it."""
        pool: Pool | None = self.pools.pool(fine_type)
        originals = [*self._memory.originals_of(fine_type), original]
        taken = self._memory.taken[fine_type]
        while pool is not None:
            barred = exclusions(pool, originals, (), self._standing_in(pool))
            try:
                return mechanism.draw(original, pool, taken, barred, self.rng)
            except PoolExhausted:
                pool = pool.larger() if self.ruleset.on_pool == "enlarge" else None
        return None

    def _standing_in(self, pool: Pool) -> frozenset[int]:
        """The texts of a plan are searched once for each pool, not for each draw."""
        place = (pool.fine_type, pool.level)
        if place not in self._standing:
            self._standing[place] = standing_in(pool, self._memory.texts)
        return self._standing[place]

    def _number(self, entity_type: str) -> int:
        for number in range(1, _MAX_PLACEHOLDER_TRIES):
            if not self._memory.literal(f"[{entity_type}_{number}]") and not self._memory.literal(
                f"{entity_type}_{number}"
            ):
                return number
        raise PoolBlocked(entity_type.lower())

    def _affordable(self, epsilon: float, delta: float) -> bool:
        limit, delta_limit = self.ruleset.session_epsilon, self.ruleset.session_delta
        slack = 1e-9
        if limit is not None and self._epsilon + epsilon > limit + slack:
            return False
        return delta_limit is None or self._delta + delta <= delta_limit + slack

    def _exhausted(self, fine_type: str, key: str, original: str, entity_type: str) -> Entry:
        rule = self.ruleset.on_pool
        if rule == "block":
            raise PoolBlocked(fine_type)
        if rule == "generic":
            return self.constant(
                fine_type, key, original, entity_type, f"[{entity_type}]", "placeholder"
            )
        return self.placeholder(fine_type, key, original, entity_type)

    def _remember(
        self, fine_type: str, key: str, original: str, entity_type: str, draw: Draw
    ) -> Entry:
        self._epsilon += draw.epsilon
        self._delta += draw.delta
        entry = Entry(
            fine_type,
            key,
            original,
            draw.name,
            draw.index,
            {"angle": f"{draw.angle:.6f}", "cosine": f"{draw.cosine:.6f}"},
            entity_type,
            draw.epsilon,
            draw.delta,
        )
        charge = Charge(
            fine_type,
            draw.mechanism,
            draw.metric,
            draw.epsilon,
            draw.delta,
            self._hmac(fine_type, key),
        )
        return self._memory.add(entry, charge)

    def _free(
        self,
        fine_type: str,
        key: str,
        original: str,
        entity_type: str,
        substitute: str,
        how: str,
        detail: Mapping[str, str] | None = None,
    ) -> Entry:
        entry = Entry(fine_type, key, original, substitute, None, dict(detail or {}), entity_type)
        charge = Charge(fine_type, how, "none", 0.0, 0.0, self._hmac(fine_type, key))
        return self._memory.add(entry, charge)
