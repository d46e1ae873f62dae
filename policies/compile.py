"""From a policy to what the pure core works with: a ruleset, thresholds, extra recognizers."""

import re
from collections.abc import Sequence

from policies.model import DenyEntry, EntityPolicy, Pattern, Policy
from privacy.embedding.base import Embedding
from privacy.mechanisms.base import Mechanism
from privacy.mechanisms.registry import make_mechanism
from privacy.substitution.rules import Rule, Ruleset
from privacy.types import Span


def compile_rules(policy: Policy, embedding: Embedding) -> Ruleset:
    """Compile the rules of ``policy`` for the planner."""
    rules = {
        name: Rule(
            entity.action,
            _mechanism(entity, embedding) if entity.action == "substitute" else None,
        )
        for name, entity in policy.entities.items()
    }
    return Ruleset(
        rules,
        session_epsilon=policy.budget.session_epsilon,
        session_delta=policy.budget.session_delta,
        date_epsilon=policy.budget.date_epsilon_per_day,
        on_budget=policy.budget.on_exhausted,
        on_pool=policy.on_pool_exhausted,
        allow=frozenset(text.casefold() for text in policy.allow),
    )


def _mechanism(entity: EntityPolicy, embedding: Embedding) -> Mechanism:
    if entity.mechanism == "uniform":
        return make_mechanism("uniform", embedding, never_self=entity.never_self)
    if entity.mechanism == "paper":
        return make_mechanism(
            "paper",
            embedding,
            epsilon=entity.epsilon,
            theta=entity.theta,
            never_self=entity.never_self,
        )
    return make_mechanism(
        "exponential",
        embedding,
        epsilon=entity.epsilon,
        tau=entity.target_distance,
        metric=entity.metric,
        never_self=entity.never_self,
    )


class PolicyFilter:
    """What a policy changes about detected spans: thresholds, own patterns, the deny list."""

    def __init__(self, policy: Policy) -> None:
        self._thresholds = {name: e.threshold for name, e in policy.entities.items()}
        self._patterns = [_compiled(p) for p in policy.patterns]
        self._patterns += [_denied(d) for d in policy.deny]

    def apply(self, text: str, spans: Sequence[Span]) -> tuple[Span, ...]:
        """Return the spans that count under the policy, own patterns first, sorted by start."""
        own = [
            Span(m.start(), m.end(), kind, score, name)
            for pattern, kind, score, name in self._patterns
            for m in pattern.finditer(text)
        ]
        own = _longest_first(own)
        kept = [
            span
            for span in spans
            if span.score >= self._thresholds.get(span.type, 0.5)
            and not any(span.overlaps(mine) for mine in own)
        ]
        return tuple(sorted([*own, *kept], key=lambda span: span.start))


def _compiled(pattern: Pattern) -> tuple[re.Pattern[str], str, float, str]:
    return re.compile(pattern.regex), pattern.type, pattern.score, f"pattern:{pattern.name}"


def _denied(entry: DenyEntry) -> tuple[re.Pattern[str], str, float, str]:
    words = r"\s+".join(re.escape(word) for word in entry.text.split())
    return re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE), entry.type, 1.0, "deny_list"


def _longest_first(spans: Sequence[Span]) -> list[Span]:
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start - s.end, s.start)):
        if not any(span.overlaps(other) for other in kept):
            kept.append(span)
    return kept
