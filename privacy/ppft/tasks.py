"""The closed list of tasks: all that a request says besides its rows.

The instruction is public text of the server's; the client sends the task's number only.
"""

from dataclasses import dataclass
from enum import IntEnum


class Task(IntEnum):
    """Numbers on the wire; never renumbered."""

    ANSWER = 0
    SENTIMENT = 1
    TOPIC = 2
    CHOICE = 3
    EXTRACT = 4
    VERDICT = 5
    INTENT = 6


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What the server does with a task.

    Attributes:
        instruction: Follows the prefix in the decoder's input.
        labels: The public answers, empty where answers are free.
    """

    instruction: str
    labels: tuple[str, ...] = ()


SPECS: dict[Task, TaskSpec] = {
    Task.ANSWER: TaskSpec("\nAnswer:"),
    Task.SENTIMENT: TaskSpec("\nSentiment:", ("negative", "positive")),
    Task.TOPIC: TaskSpec("\nTopic:", ("World", "Sports", "Business", "Technology")),
    Task.CHOICE: TaskSpec("\nChoice:"),
    Task.EXTRACT: TaskSpec("\nExtract:"),
    Task.VERDICT: TaskSpec("\nVerdict:", ("yes", "no", "maybe")),
    Task.INTENT: TaskSpec(
        "\nIntent:",
        (
            "information",
            "treatment",
            "inheritance",
            "frequency",
            "genetics",
            "symptoms",
            "causes",
            "outlook",
            "diagnosis",
            "research",
        ),
    ),
}


def task_named(name: str) -> Task:
    """Return the task of a name such as ``sentiment``.

    Raises:
        ValueError: No such task; the message lists them.
    """
    try:
        return Task[name.upper()]
    except KeyError:
        known = ", ".join(task.name.lower() for task in Task)
        raise ValueError(f"unknown task {name!r}; the tasks are {known}") from None
