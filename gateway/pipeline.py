"""The walk of a request (DESIGN 2): everything between authentication and the upstream.

`Pipeline.prepare` runs in a worker thread. It either returns a body that is safe to forward, already
charged, or raises; there is no third way out.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from connectors.router import Model, Router
from gateway import carriers
from gateway.auth import Principal
from gateway.deadline import Deadline
from gateway.errors import (
    ApiError,
    bad_request,
    blocked,
    budget_exceeded,
    no_model,
    too_late,
    unavailable,
)
from gateway.events import EntityReport, EventBus, Retrieved, Sanitised
from gateway.guard import GuardBlocked, check_outbound
from gateway.request import TOO_DEEP, strip_extensions
from gateway.retrieve import Question, Retriever
from gateway.services import Services
from gateway.session_id import session_id_of
from gateway.settled import Forgotten, SettledSessions, SettledTexts, TextKey
from gateway.text_free import must_leave_as_noise, text_free_body, text_free_model
from gateway.views import Views
from policies.compile import PolicyFilter, compile_rules
from policies.model import Policy
from privacy.embedding import Embedding
from privacy.interrupt import Interrupted, checkpoint, interruptible
from privacy.pools.artefact import PoolSet
from privacy.randomness import Randomness
from privacy.restoration import Restorer
from privacy.substitution.entry import FAMILY, GIVEN
from privacy.substitution.known import TextItem
from privacy.substitution.planner import Kept, Mention, Plan, Planner, SessionContext
from privacy.substitution.rules import BudgetExhausted, Ruleset, SubstitutionError
from privacy.types import Span
from store.errors import StoreError
from store.sessions import Change, Snapshot

_log = logging.getLogger(__name__)
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that may be forwarded.

    Attributes:
        session_created_at: Tells the session from a later one of the same id.
        payload: The serialised, guarded body.
        restorer: Puts the originals back.
        functions: The client's names of functions by those that went out; empty when all are the same.
        headers: Privacy headers of the response.
        question: The context that was added, None when none was.
    """

    request_id: str
    tenant_id: str
    session_id: str
    session_created_at: float
    model: Model
    payload: bytes = field(repr=False)
    restorer: Restorer
    headers: Mapping[str, str]
    stream: bool
    question: Question | None = field(default=None, repr=False)
    functions: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class _Texts:
    """The texts of a request: the slots of its body, then the retrieved chunks."""

    body: dict[str, Any] = field(repr=False)
    keys: tuple[TextKey, ...] = field(repr=False)
    items: tuple[TextItem | Kept, ...] = field(repr=False)
    slot_count: int
    question: Question | None = field(repr=False)
    settled: SettledTexts

    @property
    def plain_items(self) -> list[TextItem]:
        """The items as they were read, settled before or not."""
        return [item.settled.item if isinstance(item, Kept) else item for item in self.items]

    def items_for(self, snapshot: Snapshot) -> list[TextItem | Kept]:
        """Return the items; what was not settled in this very session is to be planned again."""
        same, entries = self.settled.belongs_to(snapshot), len(snapshot.entries)
        return [
            item.settled.item
            if isinstance(item, Kept) and not (same and item.known <= entries)
            else item
            for item in self.items
        ]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A plan whose body has passed the guard."""

    plan: Plan
    payload: bytes = field(repr=False)
    outbound: Sequence[str] = field(repr=False)
    functions: Mapping[str, str] = field(repr=False)


class Pipeline:
    """Prepares requests under one policy."""

    def __init__(
        self,
        services: Services,
        router: Router,
        policy: Policy,
        pools: PoolSet,
        embedding: Embedding,
        rng: Randomness,
        events: EventBus,
    ) -> None:
        self.policy = policy
        self.router = router
        self.events = events
        self.pools = pools
        self.ruleset: Ruleset = compile_rules(policy, embedding)
        self.filter = PolicyFilter(policy)
        self.views = Views(fuzzy=policy.fuzzy_restore, real_name=self._is_listed)
        self.settled = SettledSessions()
        self._forgotten = Forgotten()
        self._services = services
        self._rng = rng
        self._retriever = Retriever(services, policy.retrieval)
        self._text_free = text_free_model(policy, router)

    def prepare(
        self,
        principal: Principal,
        body: dict[str, Any],
        headers: Mapping[str, str],
        request_id: str,
        deadline: Deadline,
    ) -> Prepared:
        """Sanitise, charge and guard one request.

        Raises:
            ApiError: whatever the client has to know; nothing was forwarded, and unless the session
                already held the draws, nothing was charged.
        """
        try:
            with interruptible(deadline.check):
                return self._prepare(principal, body, headers, request_id, deadline)
        except Interrupted:
            raise too_late() from None
        except ApiError:
            raise
        except BudgetExhausted as error:
            raise budget_exceeded(str(error)) from None
        except SubstitutionError as error:
            raise blocked(str(error), "blocked_by_policy") from None
        except GuardBlocked as error:
            raise blocked(str(error), "guard_blocked") from None
        except (carriers.TooDeep, RecursionError):
            raise bad_request(TOO_DEEP, code="invalid_json") from None
        except StoreError as error:
            raise unavailable(f"The store cannot serve: {error}", "store_unavailable") from None
        except Exception as error:
            # Fail closed. Neither text nor traceback: both may quote the prompt.
            _log.error("preparing a request failed: %s", type(error).__name__)
            raise unavailable(
                "The request could not be sanitised, so it was not forwarded.", "sanitiser_failed"
            ) from None

    def _prepare(
        self,
        principal: Principal,
        body: dict[str, Any],
        headers: Mapping[str, str],
        request_id: str,
        deadline: Deadline,
    ) -> Prepared:
        checkpoint()
        model = self._model(body["model"])
        keyed_hash = self._services.tenants.entity_hasher(principal.tenant_id)
        session_id = session_id_of(headers, body, principal.key_id, keyed_hash)
        question = self._retriever.ask(principal.tenant_id, body)
        if self._text_free is not None and self.policy.routes.always:
            model = self._text_free

        def without_text(other: Model) -> Prepared:
            return self._without_text(principal, body, other, question, session_id, request_id)

        # What the policy lets pass unseen holds for every way that a request takes.
        outbound = strip_extensions(body, model.upstream_name, self.policy, keyed_hash)
        if not model.upstream.sees_text:
            return without_text(model)
        texts = self._read(outbound, question, self.settled.get(principal.tenant_id, session_id))
        if must_leave_as_noise(self.policy, texts.plain_items) and self._text_free is not None:
            return without_text(self._text_free)
        planner = Planner(self.ruleset, self.pools, self._rng, keyed_hash)
        checkpoint()
        before = self._services.sessions.open(principal.tenant_id, session_id, self.policy.name)
        try:
            after, done = self._settle(planner, texts, before, request_id, deadline)
        except BudgetExhausted:
            if self._text_free is None or self.ruleset.on_budget != "route":
                raise
            return without_text(self._text_free)
        plan = done.plan
        self.settled.of(after).keep(
            zip(texts.keys, plan.settled, strict=True), done.outbound, len(after.entries)
        )
        restorer = self.views.of(after, plan.known).restorer.protecting(plan.texts)
        if self._forgotten.holds(after):
            self._drop(principal.tenant_id, session_id)
        self._report(principal, after, plan, done.payload, question, request_id)
        return Prepared(
            request_id,
            principal.tenant_id,
            session_id,
            after.created_at,
            model,
            done.payload,
            restorer,
            self._headers(after, plan.mentions),
            bool(body.get("stream")),
            question,
            done.functions,
        )

    def _without_text(
        self,
        principal: Principal,
        body: dict[str, Any],
        model: Model,
        question: Question | None,
        session_id: str,
        request_id: str,
    ) -> Prepared:
        """Prepare a request that leaves as noised embeddings: nothing to substitute or restore."""
        session = self._services.sessions.open(principal.tenant_id, session_id, self.policy.name)
        return Prepared(
            request_id,
            principal.tenant_id,
            session_id,
            session.created_at,
            model,
            text_free_body(body, model, question),
            Restorer(()),
            self._headers(session, ()),
            bool(body.get("stream")),
            question,
        )

    def forget(self, tenant_id: str, session_id: str) -> None:
        """Drop what this process derived from a session that is forgotten."""
        self._forgotten.add(tenant_id, session_id)
        self._drop(tenant_id, session_id)

    def _drop(self, tenant_id: str, session_id: str) -> None:
        self.views.forget(tenant_id, session_id)
        self.settled.forget(tenant_id, session_id)

    def _is_listed(self, word: str) -> bool:
        return self.pools.contains(GIVEN, word) or self.pools.contains(FAMILY, word)

    def _model(self, name: str) -> Model:
        model = self.router.get(name)
        allowed = "*" in self.policy.models or name in self.policy.models
        if model is None or not allowed:
            raise no_model()
        return model

    def _read(
        self, body: dict[str, Any], question: Question | None, settled: SettledTexts
    ) -> _Texts:
        """Find the spans of every text that no earlier request of the session settled.

        Retrieved chunks bring theirs from ingestion.
        """
        slots = carriers.slots_of(body)
        chunks = question.chunks if question is not None else ()
        keys = [(s.text, s.reading) for s in slots] + [(c.text, "chunk") for c in chunks]
        kept = [settled.get(key) for key in keys]
        fresh = [s for s, old in zip(slots, kept, strict=False) if old is None and s.detect]
        found = iter(self._services.detector.detect([s.label + s.text for s in fresh]))
        items: list[TextItem | Kept] = []
        for slot, old in zip(slots, kept, strict=False):
            spans: tuple[Span, ...] = ()
            if slot.detect and not old:
                spans = self.filter.apply(slot.text, _behind(len(slot.label), next(found)))
            items.append(old or TextItem(slot.text, spans, slot.echo))
        for chunk, old in zip(chunks, kept[len(slots) :], strict=True):
            spans = () if old else self.filter.apply(chunk.text, chunk.spans)
            items.append(old or TextItem(chunk.text, spans, False))
        return _Texts(body, tuple(keys), tuple(items), len(slots), question, settled)

    def _settle(
        self,
        planner: Planner,
        texts: _Texts,
        before: Snapshot,
        request_id: str,
        deadline: Deadline,
    ) -> tuple[Snapshot, _Outcome]:
        """Plan against the session; when something is new, plan again inside the transaction.

        A request that repeats known values writes nothing. One that draws does so under the
        session's lock, and its body passes the guard before the charge is committed.
        """
        plan = self._plan(planner, texts, before)
        if not plan.changes:
            return before, self._checked(texts, plan, before)
        done: list[_Outcome] = []

        def decide(snapshot: Snapshot) -> Change:
            fresh = self._plan(planner, texts, snapshot)
            done.append(self._checked(texts, fresh, snapshot))
            deadline.seal()
            return Change(fresh.entries, fresh.charges, fresh.state)

        after = self._services.sessions.apply(
            before.tenant_id, before.session_id, request_id, decide
        )
        return after, done[-1]

    def _plan(self, planner: Planner, texts: _Texts, snapshot: Snapshot) -> Plan:
        context = SessionContext(
            snapshot.entries, snapshot.spent_epsilon, snapshot.spent_delta, snapshot.state
        )
        return planner.plan(texts.items_for(snapshot), context, self.views.of(snapshot).known)

    def _checked(self, texts: _Texts, plan: Plan, snapshot: Snapshot) -> _Outcome:
        """Build the outbound body and pass it by the guard."""
        body = carriers.replaced(texts.body, plan.texts[: texts.slot_count])
        read = set(plan.texts)
        if texts.question is not None:
            read.add(texts.question.insert(body, plan.texts[texts.slot_count :]))
        payload = orjson.dumps(body)
        # What an earlier session under the same id was told proves nothing.
        same = texts.settled.belongs_to(snapshot)
        passed = texts.settled.passed if same else lambda _: 0
        outbound = check_outbound(payload, plan.known, read, passed)
        sent, own = map(carriers.function_names, (body, texts.body))
        functions = dict(zip(sent, own, strict=True)) if sent != own else {}
        return _Outcome(plan, payload, outbound, functions)

    def _headers(self, snapshot: Snapshot, mentions: Sequence[Mention]) -> dict[str, str]:
        counts: dict[str, int] = {}
        for mention in mentions:
            counts[mention.type] = counts.get(mention.type, 0) + 1
        limit = self.ruleset.session_epsilon
        remaining = (
            "unlimited" if limit is None else f"{max(0.0, limit - snapshot.spent_epsilon):.6g}"
        )
        return {
            "x-penname-session": snapshot.session_id,
            "x-penname-policy": self.policy.name,
            "x-penname-epsilon-spent": f"{snapshot.spent_epsilon:.6g}",
            "x-penname-epsilon-remaining": remaining,
            "x-penname-entities": ",".join(f"{kind}={n}" for kind, n in sorted(counts.items())),
        }

    def _report(
        self,
        principal: Principal,
        snapshot: Snapshot,
        plan: Plan,
        payload: bytes,
        question: Question | None,
        request_id: str,
    ) -> None:
        context = tuple(
            Retrieved(c.file_id, c.filename, c.text, c.score)
            for c in (question.chunks if question is not None else ())
        )
        entities = tuple(
            EntityReport(m.original, m.substitute, m.type, m.recognizer, cost)
            for m, cost in zip(plan.mentions, _costs(plan), strict=True)
        )
        self.events.emit(
            Sanitised(
                request_id,
                principal.tenant_id,
                snapshot.session_id,
                self.policy.name,
                context,
                entities,
                sum(charge.epsilon for charge in plan.charges),
                snapshot.spent_epsilon,
                payload,
            )
        )


def _behind(label: int, spans: Sequence[Span]) -> list[Span]:
    """Return the spans of what stands behind a label, with the offsets that they have without it."""
    return [
        replace(span, start=max(0, span.start - label), end=span.end - label)
        for span in spans
        if span.end > label
    ]


def _costs(plan: Plan) -> list[float]:
    """Return what each mention was charged: the new draws in it that no earlier mention holds."""
    left = [(_words(entry.original), entry.epsilon) for entry in plan.entries if entry.epsilon]
    costs = []
    for mention in plan.mentions:
        held = _words(mention.original) if left else frozenset()
        costs.append(sum(epsilon for words, epsilon in left if words <= held))
        left = [(words, epsilon) for words, epsilon in left if not words <= held]
    return costs


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
