"""The planner: spans in, pieces and charged draws out; pure, so it can run inside a transaction."""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from privacy.accounting import Charge
from privacy.pools.artefact import PoolSet
from privacy.randomness import Randomness
from privacy.substitution.draws import Drawer
from privacy.substitution.entry import EXACT_PREFIX, MENTION, Entry
from privacy.substitution.known import KnownOriginals, TextItem
from privacy.substitution.memory import Memory
from privacy.substitution.named import NamedSubstituter
from privacy.substitution.rewrite import Piece, exposed, glued_tokens, rewrite
from privacy.substitution.rules import PolicyBlocked, Ruleset
from privacy.substitution.shapes import entity_key
from privacy.substitution.structured import StructuredSubstituter
from privacy.types import LOC, ORG, PERSON, Span

_GAP = re.compile(r"\s{1,8}")
_LATER_INITIAL = re.compile(r"\s[^\W\d_](?![^\W_])")


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
class Settled:
    """One text of a request and what goes out in its place."""

    item: TextItem
    text: str = field(repr=False)
    mentions: tuple[Mention, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Kept:
    """A text settled by an earlier request, when the session held ``known`` entries.

    It stands as it is unless an original that came later is found in it.
    """

    settled: Settled
    known: int


@dataclass(frozen=True)
class Plan:
    """The outcome of planning one request; ``known`` has every original, the new included."""

    settled: tuple[Settled, ...]
    entries: tuple[Entry, ...] = field(repr=False)
    charges: tuple[Charge, ...]
    state: Mapping[str, object] | None
    known: KnownOriginals

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The sanitised texts, one for each item."""
        return tuple(done.text for done in self.settled)

    @cached_property
    def mentions(self) -> tuple[Mention, ...]:
        """What was replaced, without repetitions."""
        return tuple(dict.fromkeys(m for done in self.settled for m in done.mentions))

    @property
    def changes(self) -> bool:
        """Whether something has to be stored."""
        return bool(self.entries or self.charges or self.state is not None)


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
        items: Sequence[TextItem | Kept],
        session: SessionContext,
        known: KnownOriginals | None = None,
    ) -> Plan:
        """Plan the substitution of all texts of one request at once.

        Args:
            items: The texts with their spans; one that an earlier request settled is read again only
                if an original that came later stands in it.
            session: The session's map and spending.
            known: The session's originals, when the caller has them indexed.

        Raises:
            SubstitutionError: the policy, the budget or a pool forbids the request.
        """
        texts = [item.settled.item if isinstance(item, Kept) else item for item in items]
        memory = Memory(session.entries, [item.text for item in texts])
        drawer = Drawer(self._ruleset, self._pools, self._rng, self._hmac, memory, session)
        resolver = _Resolver(self._ruleset, drawer, memory)
        fresh = [(item, self._wanted(item, memory)) for item in items if isinstance(item, TextItem)]
        self._introduce(fresh, resolver)
        while True:
            if known is None or len(known.entries) < len(session.entries) + len(memory.new):
                known = KnownOriginals([*session.entries, *memory.new])
            before = len(memory.new)
            settled = self._settled(items, fresh, known, resolver, memory)
            if len(memory.new) == before:
                break
            # The sweep met spellings that no detector reported ("ilse_varga"); they are known from now.
        return Plan(
            tuple(settled), tuple(memory.new), tuple(memory.charges), drawer.new_state, known
        )

    def _settled(
        self,
        items: Sequence[TextItem | Kept],
        fresh: Sequence[tuple[TextItem, Sequence[Span]]],
        known: KnownOriginals,
        resolver: "_Resolver",
        memory: Memory,
    ) -> list[Settled]:
        wanted = iter(fresh)
        settled: list[Settled] = []
        for item in items:
            text: TextItem
            spans: Sequence[Span]
            if isinstance(item, Kept):
                if not _came_later(item, known):
                    settled.append(item.settled)
                    continue
                text, spans = item.settled.item, self._wanted(item.settled.item, memory)
            else:
                text, spans = next(wanted)
            settled.append(_settle(text, spans, known, resolver, memory))
        return settled

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
            if item.echo and memory.quotes_substitute(surface):
                continue
            wanted.append(span)
        return wanted

    @staticmethod
    def _introduce(fresh: Sequence[tuple[TextItem, Sequence[Span]]], resolver: "_Resolver") -> None:
        """Draw for every new entity: full names first, since they settle what a lone word is."""
        queue = [
            (-len(item.text[span.start : span.end].split()), index, span.start, span)
            for index, (item, wanted) in enumerate(fresh)
            for span in wanted
        ]
        for _, index, _, span in sorted(queue, key=lambda row: row[:3]):
            resolver.resolve(fresh[index][0].text[span.start : span.end], span.type)


def _came_later(kept: Kept, known: KnownOriginals) -> bool:
    """Tell whether an original that was not known then stands in a text, or in what goes out for it."""
    settled, since = kept.settled, kept.known
    if known.came_later(since, settled.item):
        return True
    return settled.text != settled.item.text and bool(known.find(settled.text, since=since))


def _settle(
    item: TextItem,
    wanted: Sequence[Span],
    known: KnownOriginals,
    resolver: "_Resolver",
    memory: Memory,
) -> Settled:
    """Replace what was detected and what the session knows, in one pass."""
    mentions: list[Mention] = []
    swept = known.find(item.text, item.spans)
    spans = _with_initials(item.text, _merge(wanted, swept))
    pieces = resolver.pieces(item.text, spans, mentions)
    left = _untouched(item, swept, pieces, known)
    while True:
        pieces += resolver.pieces(item.text, left, mentions)
        spans += left
        done = set(spans)
        left = [s for s in exposed(item.text, pieces, known.find) if s not in done]
        if not left:
            break
    wholes = [
        (span.start + parts[0].start, span.start + parts[-1].end)
        for span in spans
        if len(parts := resolver.resolve(item.text[span.start : span.end], span.type)) > 1
    ]
    for token, substitute in glued_tokens(item.text, pieces, wholes):
        _remember_token(token, substitute, memory)
    return Settled(item, rewrite(item.text, pieces), tuple(dict.fromkeys(mentions)))


def _remember_token(token: str, substitute: str, memory: Memory) -> None:
    """Keep a token; one that went out before with fewer of its names known has two substitutes."""
    key = EXACT_PREFIX + token
    known = memory.get(MENTION, key)
    if known is not None and known.substitute != substitute:
        key = f"{key}={substitute}"
        known = memory.get(MENTION, key)
    if known is None:
        memory.add(Entry(MENTION, key, token, substitute, None, {}, PERSON))


def _untouched(
    item: TextItem, swept: Sequence[Span], pieces: Sequence[Piece], known: KnownOriginals
) -> list[Span]:
    """Return the known originals that stand where nothing is replaced.

    A title, a suffix or a legal form stays, unless the session knows the word as somebody's name.
    """
    ordered = sorted(pieces, key=lambda piece: piece.start)
    ends = [piece.end for piece in ordered]
    left = []
    for span in swept:
        place = bisect_right(ends, span.start)
        piece = ordered[place] if place < len(ordered) else None
        if piece is None or piece.start >= span.end:
            left.append(span)
        elif piece.start > span.start or piece.end < span.end:
            # Of a longer original a part is replaced: what is around it may be one of its own.
            masks = [replace(p, replacement="X".ljust(p.end - p.start, "x")) for p in ordered]
            return known.find(rewrite(item.text, masks), item.spans)
    return left


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


def _merge(detected: Sequence[Span], swept: Sequence[Span]) -> list[Span]:
    """Join detected and swept spans: the longer of two stays, and two that cross become one.

    Both are sorted and without overlaps of their own.
    """
    merged: list[Span] = []
    # At one start the longer first; of two equal ones the swept, which is of a known type.
    for span in sorted([*swept, *detected], key=lambda s: (s.start, -s.end)):
        last = merged[-1] if merged else None
        if last is None or last.end <= span.start:
            merged.append(span)
        elif last.end < span.end:
            # "@sean.o'malley": an account that ends in the middle of a known name.
            merged[-1] = replace(last, end=span.end)
    return merged


def _with_initials(text: str, spans: Sequence[Span]) -> list[Span]:
    """Join a person to the one before where an initial follows: "Niamh" and "Gallagher K.".

    An initial is restored by the name it stands in, and "Niamh Gallagher" would be taken out of it.
    """
    joined: list[Span] = []
    for span in spans:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.type == span.type == PERSON
            and _GAP.fullmatch(text, last.end, span.start)
            and _LATER_INITIAL.search(text, span.start, span.end)
        ):
            joined[-1] = replace(last, end=span.end)
        else:
            joined.append(span)
    return joined
