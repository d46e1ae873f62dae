"""The account of one session, and the list of sessions."""

from collections import Counter
from typing import Any

from gateway.pipeline import Pipeline
from gateway.services import Services
from privacy.accounting import Bound, Charge, totals
from privacy.mechanisms.depletion import depletion
from privacy.ppft.accounting import ACCOUNT
from store.ledger import Ledger
from store.sessions import Snapshot


def describe(
    services: Services, pipeline: Pipeline, tenant_id: str, session_id: str
) -> dict[str, Any] | None:
    """Return totals, pools and budget of a session, None when there is none."""
    snapshot = services.sessions.get(tenant_id, session_id)
    if snapshot is None:
        return None
    everything = Ledger(services.db).rows(tenant_id, session_id)
    rows = [row for row in everything if row.account != ACCOUNT]
    noised = [row.charge for row in everything if row.account == ACCOUNT]
    sums = totals(
        Charge(r.fine_type, r.mechanism, r.metric, r.epsilon, r.delta, r.entity_hmac) for r in rows
    )
    limit, delta_limit = pipeline.ruleset.session_epsilon, pipeline.ruleset.session_delta
    return {
        "id": session_id,
        "object": "privacy.session",
        "created_at": int(snapshot.created_at),
        "last_used_at": int(snapshot.last_used_at),
        "policy": snapshot.policy,
        "ledger": {
            "rows": len(rows),
            "requests": len({row.request_id for row in rows}),
            "epsilon": snapshot.spent_epsilon,
            "delta": snapshot.spent_delta,
            "bounds": {
                bound.name: _bound(bound) for bound in (sums.basic, sums.advanced, sums.zcdp)
            },
            "best": {"name": sums.best.name, **_bound(sums.best)},
            "date_shift_epsilon_per_day": sums.days,
        },
        # Another unit: loss between any two records, over the noised rows that stood for them.
        "ppft": {"requests": len(noised), "epsilon": sum(charge.epsilon for charge in noised)},
        "budget": {
            "epsilon": limit,
            "remaining": _left(limit, snapshot.spent_epsilon),
            "delta": delta_limit,
            "delta_remaining": _left(delta_limit, snapshot.spent_delta),
        },
        "entities": _entities(snapshot),
        "pools": pool_levels(pipeline, snapshot, len({row.request_id for row in rows})),
    }


def list_page(services: Services, tenant_id: str, limit: int, after: str | None) -> dict[str, Any]:
    """Return one page of a tenant's sessions, last used first.

    Raises:
        NotFound: ``after`` is no session of the tenant.
    """
    found = services.sessions.list(tenant_id, limit + 1, after)
    return {
        "object": "list",
        "data": [
            {
                "id": info.session_id,
                "object": "privacy.session",
                "created_at": int(info.created_at),
                "last_used_at": int(info.last_used_at),
                "policy": info.policy,
            }
            for info in found[:limit]
        ],
        "has_more": len(found) > limit,
    }


def pool_levels(pipeline: Pipeline, snapshot: Snapshot, requests: int) -> list[dict[str, Any]]:
    """Return size, used, remaining and projected exhaustion of every pool."""
    used = Counter(e.fine_type for e in snapshot.entries if e.pool_index is not None)
    levels = []
    for fine_type in pipeline.pools.fine_types:
        state = depletion(pipeline.pools.pool(fine_type), used[fine_type], requests)
        levels.append(
            {
                "type": fine_type,
                "size": state.size,
                "used": state.used,
                "remaining": state.remaining,
                "requests_left": state.requests_left,
            }
        )
    return levels


def _left(limit: float | None, spent: float) -> float | None:
    return None if limit is None else max(0.0, limit - spent)


def _entities(snapshot: Snapshot) -> dict[str, int]:
    return dict(sorted(Counter(e.fine_type for e in snapshot.entries).items()))


def _bound(bound: Bound) -> dict[str, Any]:
    return {"epsilon": bound.epsilon if bound.finite else None, "delta": bound.delta}
