"""The unified prompt: one field order for every corpus and every request.

Context, question, options; the answer follows in training and never enters the embeddings.  Fields
that a record lacks are left out.  Options become a list lettered A, B, C ..., whatever the source's
form, and the answer of a multiple-choice record is the text of its option, so that the answer means
the same whatever the order.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from privacy.ppft.tasks import SPECS, Task

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LABEL = re.compile(r"^\s*[(\[]?([A-Za-z])[)\].:]\s+")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Record:
    """One example or request; the text fields stay inside the trust boundary.

    Attributes:
        task: What is asked for.
        context, question, options: The prompt's fields.
        answer: Expected answer, empty in a request.
        accepted: Further answers that count as right (extraction).
    """

    task: Task
    context: str = field(default="", repr=False)
    question: str = field(default="", repr=False)
    options: tuple[str, ...] = field(default=(), repr=False)
    answer: str = field(default="", repr=False)
    accepted: tuple[str, ...] = field(default=(), repr=False)

    @property
    def candidates(self) -> tuple[str, ...]:
        """The answers to choose from: its own options, or the task's public labels."""
        return self.options or SPECS[self.task].labels


def render(record: Record) -> str:
    """Return the text that is encoded: the fields in their order, one a line."""
    lines = [_clean(record.context), _clean(record.question)]
    if record.options:
        lines.append(" ".join(f"({_LETTERS[i]}) {o}" for i, o in enumerate(record.options)))
    return "\n".join(line for line in lines if line)


def conversation(turns: Sequence[tuple[str, str]], task: Task, answer: str = "") -> Record:
    """Return a chat as a record: the last user message is the question, the others are the context.

    Args:
        turns: Role and text of each message, the answer not among them.

    Raises:
        ValueError: There is no user message.
    """
    last = max((i for i, (role, _) in enumerate(turns) if role == "user"), default=-1)
    if last < 0:
        raise ValueError("a conversation needs a message of the user")
    others = "\n".join(text for i, (_, text) in enumerate(turns) if i != last)
    return Record(task, others, turns[last][1], answer=answer)


def multiple_choice(
    question: str, options: Sequence[str], answer: str | int, context: str = ""
) -> Record:
    """Normalise a multiple-choice item.

    Args:
        question, context: Its texts.
        options: With or without letters in front.
        answer: A letter, an index from 0, or the text of an option.

    Raises:
        ValueError: Fewer than 2 or more than 26 options, two alike, or the answer is none of them.
    """
    texts = _unlettered([_clean(option) for option in options])
    if not 2 <= len(texts) <= len(_LETTERS) or len(set(texts)) != len(texts):
        raise ValueError("a multiple-choice item needs 2 to 26 different options")
    return Record(Task.CHOICE, context, question, texts, texts[_chosen(answer, texts)])


def _unlettered(options: list[str]) -> tuple[str, ...]:
    # Letters are removed only where they run A, B, C ...: an option may begin with "E. coli".
    found = [_LABEL.match(option) for option in options]
    if all(m and m[1].upper() == _LETTERS[i % 26] for i, m in enumerate(found)):
        return tuple(_LABEL.sub("", option) for option in options)
    return tuple(options)


def _chosen(answer: str | int, options: tuple[str, ...]) -> int:
    if isinstance(answer, int):
        if 0 <= answer < len(options):
            return answer
        raise ValueError(f"there is no option {answer}")
    text = _clean(answer)
    if text in options:
        return options.index(text)
    letter = text.strip("().").upper()
    if len(letter) == 1 and letter in _LETTERS[: len(options)]:
        return _LETTERS.index(letter)
    raise ValueError("the answer is none of the options")


def _clean(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()
