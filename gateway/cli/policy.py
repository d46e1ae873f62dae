"""`penname policy check|show|try`."""

import sys
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from gateway.cli.console import CommandError, print_json
from policies.compile import PolicyFilter, compile_rules
from policies.loader import load_policy
from policies.model import Policy


def check(name: str) -> None:
    policy = load_policy(name)
    Console().print(
        f"{name}: policy {policy.name!r} is valid", highlight=False, markup=False, soft_wrap=True
    )


def show(name: str, as_json: bool) -> None:
    data = load_policy(name).model_dump(mode="json")
    if as_json:
        print_json(data)
    else:
        sys.stdout.write(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))


def try_text(text: str, policy_name: str, as_json: bool) -> None:
    """Run detection and substitution in a session that is thrown away."""
    policy = load_policy(policy_name)
    if text == "-":
        text = sys.stdin.read()
    result = preview(text, policy)
    if as_json:
        print_json(result)
        if result["blocked"] is not None:
            raise SystemExit(2)
        return
    table = Table("text", "type", "score", "found by", "becomes")
    for span in result["spans"]:
        table.add_row(
            text[span["start"] : span["end"]],
            span["type"],
            f"{span['score']:.2f}",
            span["recognizer"],
            span["substitute"] or ("(stays)" if result["blocked"] is None else "(not sent)"),
        )
    out = Console()
    out.print(table)
    if result["blocked"] is not None:
        raise CommandError(f"blocked by the policy {policy.name!r}: {result['blocked']}")
    out.print(result["text"], markup=False, highlight=False, soft_wrap=True)
    out.print(f"ε {result['epsilon']:.4g}, δ {result['delta']:.3g}", highlight=False, style="bold")


def preview(text: str, policy: Policy) -> dict[str, Any]:
    """Return spans, sanitised text and cost of ``text`` under ``policy``, charging nothing.

    ``blocked`` says why nothing would leave; then there is no sanitised text.
    """
    import hashlib
    import hmac
    import secrets

    from gateway.bootstrap import build_detector, load_embedding
    from gateway.cli.detect import span_json
    from gateway.settings import Settings
    from privacy.pools.artefact import PoolSet
    from privacy.randomness import SystemRandomness
    from privacy.substitution.known import TextItem
    from privacy.substitution.planner import Planner, SessionContext
    from privacy.substitution.rules import SubstitutionError

    embedding = load_embedding()
    key = secrets.token_bytes(32)
    planner = Planner(
        compile_rules(policy, embedding),
        PoolSet.load(),
        SystemRandomness(),
        lambda kind, name: hmac.digest(key, f"{kind}/{name}".encode(), hashlib.sha256).hex(),
    )
    spans = PolicyFilter(policy).apply(text, build_detector(Settings()).detect([text])[0])
    shown = [span_json(span) for span in spans]
    try:
        plan = planner.plan([TextItem(text, spans)], SessionContext())
    except SubstitutionError as error:
        unsent = [{**span, "substitute": None} for span in shown]
        return {"policy": policy.name, "spans": unsent, "text": None, "blocked": str(error)}
    becomes = {mention.original: mention.substitute for mention in plan.mentions}
    return {
        "policy": policy.name,
        "spans": [
            {**span, "substitute": becomes.get(text[span["start"] : span["end"]])} for span in shown
        ],
        "text": plan.texts[0],
        "blocked": None,
        "epsilon": sum(c.epsilon for c in plan.charges if c.metric != "days"),
        "delta": sum(c.delta for c in plan.charges),
        "draws": len(plan.charges),
    }
