"""The two protocols that the detection engine joins: recognizers and the tagger."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from privacy.types import Span


@runtime_checkable
class Recognizer(Protocol):
    """Finds entities by their form.

    Attributes:
        name: Unique name, shown in explanations.
        types: The entity types it reports, each one of ``privacy.types.ENTITY_TYPES``.

    A recognizer holds no state that `find` changes, so one instance serves all threads. If it sets a
    class attribute ``whole_text = True`` the engine never windows its input; it must then be linear
    in the length of the text.
    """

    @property
    def name(self) -> str: ...

    @property
    def types(self) -> tuple[str, ...]: ...

    def find(self, text: str) -> list[Span]:
        """Return spans in code points of ``text``, in any order; they may overlap."""
        ...


class Tagger(Protocol):
    """A trained sequence tagger for PERSON, ORG and LOC."""

    def tag(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return one list of spans for each text, in code points of that text; texts of any length."""
        ...
