"""Dates move and keep their form."""

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.surrogates import shift_date

# Moved by 15 days over a leap day.
FORMS = [
    ("1984-02-17", "1984-03-03"),
    ("1984/2/17", "1984/3/3"),
    ("1984.02.17", "1984.03.03"),
    ("19840217", "19840303"),
    ("17/02/1984", "03/03/1984"),
    ("02/17/1984", "03/03/1984"),
    ("17.02.84", "03.03.84"),
    ("17. 2. 1984", "3. 3. 1984"),
    ("17-02-1984", "03-03-1984"),
    ("17 February 1984", "3 March 1984"),
    ("17th of February 1984", "3rd of March 1984"),
    ("17 FEB 1984", "3 MAR 1984"),
    ("17-Feb-84", "3-Mar-84"),
    ("February 17, 1984", "March 3, 1984"),
    ("Feb. 17, 1984", "Mar. 3, 1984"),
    ("February 17th, 1984", "March 3rd, 1984"),
    ("Friday, 17 February 1984", "Saturday, 3 March 1984"),
    ("Fri, 17 Feb 1984", "Sat, 3 Mar 1984"),
    ("17. Februar 1984", "3. März 1984"),
    ("20. April 1984", "5. Mai 1984"),
    ("17 février 1984", "3 mars 1984"),
    ("17 de febrero de 1984", "3 de marzo de 1984"),
    ("17 febbraio 1984", "3 marzo 1984"),
    ("17 februari 1984", "3 maart 1984"),
    ("1984-02-17T10:00:00Z", "1984-03-03T10:00:00Z"),
    ("1984-02-17 10:00", "1984-03-03 10:00"),
    ("February 17", "March 3"),
    ("17 Feb", "3 Mar"),
]


@pytest.mark.parametrize(("text", "moved"), FORMS)
def test_forms(text: str, moved: str) -> None:
    assert shift_date(text, 15) == moved


def test_months_without_a_day_always_move() -> None:
    assert shift_date("February 1984", 40) == "March 1984"
    assert shift_date("February 1984", 3) == "March 1984"
    assert shift_date("Jan 1984", -3) == "Dec 1983"
    assert shift_date("02/1984", -40) == "01/1984"
    assert shift_date("1984-02", 400) == "1985-03"


def test_the_reading_of_ambiguous_dates() -> None:
    assert shift_date("02/03/1984", 1) == "02/04/1984"
    assert shift_date("02/03/1984", 1, day_first=True) == "03/03/1984"
    assert shift_date("02.03.1984", 1) == "03.03.1984"
    assert shift_date("2/28/84", 1) == "2/29/84"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "1984",
        "31/02/1984",
        "13/13/1984",
        "0000-01-01",
        "9999-12-31x",
        "17 Foo 1984",
    ],
)
def test_unreadable(text: str) -> None:
    assert shift_date(text, 15) is None


def test_out_of_the_calendar() -> None:
    assert shift_date("9999-12-31", 15) is None


WRITERS = ["%Y-%m-%d", "%d.%m.%Y", "%B %d, %Y", "%d %B %Y", "%A, %d %B %Y", "%Y%m%d"]


@settings(max_examples=200, deadline=None)
@given(
    st.dates(dt.date(1900, 1, 1), dt.date(2090, 1, 1)),
    st.integers(-3000, 3000),
    st.sampled_from(WRITERS),
)
def test_moved_dates_are_the_dates_moved(date: dt.date, days: int, form: str) -> None:
    moved = shift_date(date.strftime(form), days)
    assert moved is not None
    expected = date + dt.timedelta(days)
    assert dt.datetime.strptime(moved, form).date() == expected
    if "%A" in form:
        assert moved.startswith(expected.strftime("%A"))
    back = shift_date(moved, -days)
    assert back is not None
    assert dt.datetime.strptime(back, form).date() == date


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40), st.integers(-100, 100))
def test_any_text(text: str, days: int) -> None:
    moved = shift_date(text, days)
    assert moved is None or any(char.isdigit() for char in moved)
