"""The unified prompt and the normal form of multiple choice."""

import pytest

from privacy.ppft.prompt import Record, multiple_choice, render
from privacy.ppft.tasks import Task, task_named


def test_fields_come_in_one_order_and_the_answer_never() -> None:
    record = Record(
        Task.CHOICE, " A  patient\ncoughs. ", "What is it?", ("flu", "cold"), "flu", ("influenza",)
    )
    assert render(record) == "A patient coughs.\nWhat is it?\n(A) flu (B) cold"
    assert render(Record(Task.ANSWER, question="Why?", answer="secret")) == "Why?"
    assert render(Record(Task.ANSWER)) == ""


@pytest.mark.parametrize("answer", ["B", "b", "(B)", 1, "cold"])
@pytest.mark.parametrize(
    "options",
    [
        ("flu", "cold", "gout"),
        ("A. flu", "B. cold", "C. gout"),
        ("(a) flu", "(b)  cold", "(c) gout"),
    ],
)
def test_every_form_of_multiple_choice_is_one(options: tuple[str, ...], answer: str | int) -> None:
    record = multiple_choice("What?", options, answer)
    assert record.options == ("flu", "cold", "gout")
    assert record.answer == "cold" and record.candidates == record.options


def test_an_option_that_begins_like_a_letter_keeps_it() -> None:
    record = multiple_choice("Which germ?", ["E. coli", "S. aureus"], 0)
    assert record.options == ("E. coli", "S. aureus")


@pytest.mark.parametrize(
    ("options", "answer"),
    [(["one"], 0), (["same", "same"], 0), (["a b", "c d"], "Z"), (["a b", "c d"], 2), ([], 0)],
)
def test_what_is_no_choice_is_refused(options: list[str], answer: str | int) -> None:
    with pytest.raises(ValueError, match=r"option|options"):
        multiple_choice("What?", options, answer)


def test_tasks_are_a_closed_list() -> None:
    assert task_named("Sentiment") is Task.SENTIMENT
    assert Record(Task.SENTIMENT, "fine").candidates == ("negative", "positive")
    with pytest.raises(ValueError, match="the tasks are answer, sentiment"):
        task_named("poem")
    assert [task.value for task in Task] == [0, 1, 2, 3, 4, 5, 6]
