"""The planner: spans in, pieces and charged draws out; pure, so it can run inside a transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from privacy.accounting import Charge
from privacy.detection.matcher import KnownMatcher
from privacy.pools.artefact import PoolSet
from privacy.randomness import Randomness
from privacy.substitution.draws import Drawer
from privacy.substitution.entry import INITIAL, MENTION, Entry
from privacy.substitution.memory import Memory
from privacy.substitution.named import NamedSubstituter
from privacy.substitution.rewrite import Piece, rewrite
from privacy.substitution.rules import PolicyBlocked, Ruleset
from privacy.substitution.shapes import entity_key
from privacy.substitution.structured import StructuredSubstituter
from privacy.types import LOC, ORG, PERSON, Span


@dataclass(frozen=True, slots=True)
class TextItem:
    """One text of a request.

    Attributes:
        text: The original text.
        spans: Non-overlapping detected spans, sorted by start.
        echo: Whether the text may quote substitutes that were issued before (a client may resend
            what the model wrote); documents of the store never do.
    """

    text: str = field(repr=False)
    spans: tuple[Span, ...] = ()
    echo: bool = True


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What a plan knows of its session: the map, what is spent, and small state."""

    entries: tuple[Entry, ...] = field(default=(), repr=False)
    spent_epsilon: float = 0.0
    spent_delta: float = 0.0
    state: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Mention:
    """One replaced span of the request, for reports: what stood there and what went out."""

    original: str = field(repr=False)
    substitute: str = field(repr=False)
    type: str
    recognizer: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The outcome of planning one request; ``matcher`` knows every original, the new included."""

    texts: tuple[str, ...] = field(repr=False)
    pieces: tuple[tuple[Piece, ...], ...] = field(repr=False)
    mentions: tuple[Mention, ...] = field(repr=False)
    entries: tuple[Entry, ...] = field(repr=False)
    charges: tuple[Charge, ...]
    state: Mapping[str, object] | None
    matcher: KnownMatcher

    @property
    def changes(self) -> bool:
        """Whether something has to be stored."""
        return bool(self.entries or self.charges or self.state is not None)


def known_originals(entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """Return ``(original, type)`` of what the sweep and the guard look for."""
    return [(e.original, e.type) for e in entries if e.fine_type not in (MENTION, INITIAL)]


class Planner:
    """Plans requests under one ruleset.

    Args:
        ruleset: The compiled policy.
        pools: The public pools.
        rng: Source of randomness.
        entity_hmac: Maps ``(fine_type, key)`` to the keyed hash that the ledger stores.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        pools: PoolSet,
        rng: Randomness,
        entity_hmac: Callable[[str, str], str],
    ) -> None:
        self._ruleset = ruleset
        self._pools = pools
        self._rng = rng
        self._hmac = entity_hmac

    def plan(
        self,
        items: Sequence[TextItem],
        session: SessionContext,
        matcher: KnownMatcher | None = None,
    ) -> Plan:
        """Plan the substitution of all texts of one request at once.

        Args:
            items: The texts with their spans.
            session: The session's map and spending.
            matcher: A matcher over the session's known originals, when the caller has one.

        Raises:
            SubstitutionError: the policy, the budget or a pool forbids the request.
        """
        memory = Memory(session.entries, [item.text for item in items])
        drawer = Drawer(self._ruleset, self._pools, self._rng, self._hmac, memory, session)
        resolver = _Resolver(self._ruleset, drawer, memory)
        spans = [self._wanted(item, memory) for item in items]
        self._introduce(items, spans, resolver)
        if matcher is None or memory.new:
            matcher = KnownMatcher(known_originals([*session.entries, *memory.new]))
        texts: list[str] = []
        pieces: list[tuple[Piece, ...]] = []
        mentions: list[Mention] = []
        for item, wanted in zip(items, spans, strict=True):
            swept = matcher.find(item.text, item.spans)
            final = _merge(wanted, swept)
            replaced = resolver.pieces(item.text, final, mentions)
            texts.append(rewrite(item.text, replaced))
            pieces.append(tuple(replaced))
        return Plan(
            tuple(texts),
            tuple(pieces),
            tuple(dict.fromkeys(mentions)),
            tuple(memory.new),
            tuple(memory.charges),
            drawer.new_state,
            matcher,
        )

    def _wanted(self, item: TextItem, memory: Memory) -> list[Span]:
        """Return the spans that the policy acts on, quotations of substitutes left out."""
        wanted = []
        for span in item.spans:
            surface = item.text[span.start : span.end]
            rule = self._ruleset.rule(span.type)
            if rule.action == "allow" or entity_key(surface) in self._ruleset.allow:
                continue
            if rule.action == "block":
                raise PolicyBlocked(span.type)
            if item.echo and _quotes_substitute(surface, memory):
                continue
            wanted.append(span)
        return wanted

    @staticmethod
    def _introduce(
        items: Sequence[TextItem], spans: Sequence[Sequence[Span]], resolver: "_Resolver"
    ) -> None:
        """Draw for every new entity: full names first, since they settle what a lone word is."""
        queue = [
            (-len(item.text[span.start : span.end].split()), index, span.start, span)
            for index, (item, wanted) in enumerate(zip(items, spans, strict=True))
            for span in wanted
        ]
        for _, index, _, span in sorted(queue, key=lambda row: row[:3]):
            resolver.resolve(items[index].text[span.start : span.end], span.type)


class _Resolver:
    """Turns one span into pieces, by type."""

    def __init__(self, ruleset: Ruleset, drawer: Drawer, memory: Memory) -> None:
        self._ruleset = ruleset
        self._named = NamedSubstituter(drawer, memory)
        self._structured = StructuredSubstituter(drawer, memory)
        self._seen: dict[tuple[str, str], list[Piece]] = {}

    def resolve(self, surface: str, entity_type: str) -> list[Piece]:
        """Return the pieces of ``surface``, offsets relative to it."""
        cached = self._seen.get((surface, entity_type))
        if cached is None:
            cached = self._resolve(surface, entity_type)
            self._seen[(surface, entity_type)] = cached
        return cached

    def _resolve(self, surface: str, entity_type: str) -> list[Piece]:
        rule = self._ruleset.rule(entity_type)
        if rule.action == "substitute" and entity_type == PERSON:
            return self._named.person(surface, rule)
        if rule.action == "substitute" and entity_type == ORG:
            return self._named.organisation(surface, rule)
        if rule.action == "substitute" and entity_type == LOC:
            return self._named.place(surface, rule)
        return self._structured.pieces(surface, entity_type, rule)

    def pieces(self, text: str, spans: Sequence[Span], mentions: list[Mention]) -> list[Piece]:
        found: list[Piece] = []
        for span in spans:
            surface = text[span.start : span.end]
            relative = self.resolve(surface, span.type)
            found.extend(
                Piece(span.start + p.start, span.start + p.end, p.replacement) for p in relative
            )
            if relative:
                mentions.append(
                    Mention(surface, rewrite(surface, relative), span.type, span.recognizer)
                )
        return found


def _quotes_substitute(surface: str, memory: Memory) -> bool:
    """Tell whether ``surface`` is made of substitutes that this session issued itself."""
    if memory.is_issued(surface):
        return not memory.knows_original(surface)
    return any(entity_key(surface) == entity_key(m.substitute) for m in memory.mentions())


def _merge(detected: Sequence[Span], swept: Sequence[Span]) -> list[Span]:
    """Join detected and swept spans: the longer of two that touch the same text stays."""
    merged = list(detected)
    for span in swept:
        touching = [other for other in merged if other.overlaps(span)]
        if not touching:
            merged.append(span)
        elif all(span.start <= other.start and other.end <= span.end for other in touching):
            merged = [other for other in merged if not other.overlaps(span)]
            merged.append(span)
    return sorted(merged, key=lambda span: span.start)
