"""Totals: every bound valid, the smallest named."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy.accounting import Charge, entity_totals, hockey_stick, totals
from privacy.accounting.composition import advanced, concentrated, rho_to_epsilon


def charge(epsilon: float, delta: float = 0.0, **changes: str) -> Charge:
    fields = {
        "fine_type": "person.given",
        "mechanism": "exponential",
        "metric": "angular",
        "entity_hmac": "e1",
        **changes,
    }
    return Charge(epsilon=epsilon, delta=delta, **fields)


def two_points(epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """The worst pure pair: one bit answered truthfully with odds exp(epsilon)."""
    high, low = -math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(epsilon))
    return np.array([high, low]), np.array([low, high])


def exponential_pair(epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """A bounded-range pair: log ratios 0-centred in an interval of length epsilon, lopsided."""
    scores = np.array([0.0, -epsilon / 2, -epsilon / 2])
    mirrored = np.array([-epsilon / 2, 0.0, 0.0])
    return tuple(s - np.log(np.exp(s).sum()) for s in (scores, mirrored))  # type: ignore[return-value]


def product(pairs: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    p, q = np.zeros(1), np.zeros(1)
    for one, two in pairs:
        p, q = np.add.outer(p, one).ravel(), np.add.outer(q, two).ravel()
    return p, q


@given(
    st.lists(st.floats(0.01, 3.0), min_size=1, max_size=7),
    st.sampled_from([1e-6, 1e-3, 0.05]),
)
@settings(deadline=None, max_examples=60)
def test_every_bound_holds_for_the_exact_composition(epsilons: list[float], slack: float) -> None:
    rows = [charge(epsilon) for epsilon in epsilons]
    pure = [charge(epsilon, mechanism="other") for epsilon in epsilons]
    for pairs, charges in (
        ([exponential_pair(e) for e in epsilons], rows),
        ([two_points(e) for e in epsilons], pure),
    ):
        p, q = product(pairs)
        total = totals(charges, slack)
        for bound in (total.basic, total.advanced, total.zcdp):
            excess = hockey_stick(p, q, bound.epsilon + 1e-9)
            assert excess <= bound.delta + 1e-9, bound


def test_the_smallest_bound_is_named() -> None:
    few = totals([charge(1.0)] * 2)
    assert few.best == few.basic
    assert (few.best.name, few.best.epsilon, few.best.delta) == ("basic", 2.0, 0.0)
    many = totals([charge(0.5)] * 200)
    assert many.basic.epsilon == 100.0
    assert many.best == many.zcdp
    assert many.zcdp.epsilon < many.advanced.epsilon < 100.0
    assert many.best.delta == pytest.approx(1e-6)


def test_zcdp_of_the_notes_example() -> None:
    """20 draws of worst-case range 1: rho 2.5; the textbook conversion gives 14.3 at 1e-6."""
    epsilon, delta = concentrated([charge(1.0)] * 20, 1e-6)
    textbook = 2.5 + 2 * math.sqrt(2.5 * math.log(1e6))
    assert textbook == pytest.approx(14.3, abs=0.05)
    assert 12.0 < epsilon < textbook
    assert delta == pytest.approx(1e-6)
    other, _ = concentrated([charge(1.0, mechanism="other")] * 20, 1e-6)
    assert other > epsilon


def test_advanced_composition_against_the_published_formula() -> None:
    epsilon, delta = advanced([charge(0.1, 1e-7)] * 100, 1e-5)
    drift = 100 * 0.1 * (math.e**0.1 - 1) / (math.e**0.1 + 1)
    squares = 100 * 0.01
    first = drift + math.sqrt(2 * squares * math.log(1e5))
    second = drift + math.sqrt(2 * squares * math.log(math.e + math.sqrt(squares) / 1e-5))
    assert epsilon == pytest.approx(min(first, second))
    assert delta == pytest.approx(1 - (1 - 1e-5) * (1 - 1e-7) ** 100)


def test_deltas_add_up_and_stop_at_one() -> None:
    rows = [charge(0.1, 0.3)] * 4
    assert totals(rows).basic.delta == 1.0
    assert totals(rows).advanced.delta == pytest.approx(1 - (1 - 1e-6) * 0.7**4)
    assert totals([charge(0.0, 1.0)]).zcdp.delta == 1.0
    assert not totals([charge(0.0, 1.0)]).basic.finite


def test_a_draw_without_finite_epsilon_has_no_finite_total() -> None:
    total = totals([charge(1.0), charge(math.inf, 0.2, mechanism="paper", metric="none")])
    assert [total.basic.epsilon, total.advanced.epsilon, total.zcdp.epsilon] == [math.inf] * 3
    assert not total.best.finite


def test_days_are_an_account_of_their_own() -> None:
    date = charge(0.02, fine_type="date", mechanism="discrete_laplace", metric="days")
    total = totals([charge(1.0), date, date])
    assert total.draws == 1
    assert total.basic.epsilon == 1.0
    assert total.days == pytest.approx(0.04)


def test_an_empty_ledger_is_free() -> None:
    total = totals([])
    assert (total.draws, total.best.name, total.best.epsilon, total.best.delta) == (
        0,
        "basic",
        0,
        0,
    )


def test_one_entity_pays_for_itself_and_for_others_exclusions() -> None:
    rows = [
        charge(1.0, 0.01),
        charge(2.0, 0.25, entity_hmac="e2"),
        charge(2.0, 0.0, entity_hmac="e3"),
        charge(4.0, 0.25, entity_hmac="e4", fine_type="org"),
    ]
    total = entity_totals(rows, "e1")
    assert total.basic.epsilon == pytest.approx(1.0 + math.log(1.25))
    assert total.basic.delta == pytest.approx(0.26)
    assert entity_totals(rows, "nobody").draws == 0


def test_conversion_of_zcdp() -> None:
    assert rho_to_epsilon(0.0, 1e-6) == 0.0
    assert rho_to_epsilon(math.inf, 1e-6) == math.inf
    for rho, delta in itertools.product([1e-4, 0.1, 5.0, 300.0], [1e-9, 1e-5, 0.01]):
        assert rho_to_epsilon(rho, delta) <= rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-9
    with pytest.raises(ValueError, match="slack"):
        rho_to_epsilon(1.0, 0.0)


def test_senseless_charges_are_refused() -> None:
    for epsilon, delta in ((-1.0, 0.0), (math.nan, 0.0), (1.0, -0.1), (1.0, 1.1), (1.0, math.nan)):
        with pytest.raises(ValueError, match="charge needs"):
            charge(epsilon, delta)
    with pytest.raises(ValueError, match="slack"):
        totals([], 1.0)
