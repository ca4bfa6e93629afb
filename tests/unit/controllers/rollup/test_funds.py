"""For how long a signer can pay: by what it held, and when."""

from collections.abc import Iterator
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pequod.controllers.rollup.funds import ETHER, HISTORY, LEAST_GAS, Funds, ether

GWEI = 10**9
MINUTE, HOUR = 60.0, 3600.0
NOON = 10_000.0
HOURS = 24


def held(*amounts: tuple[float, float], price: int = GWEI) -> Funds:
    """An account that was seen to hold amounts of ether over time."""
    funds = Funds()
    for after, amount in amounts:
        funds.saw(int(amount * ETHER), price, NOON + after)
    return funds


def spending(balance: float, each: float, every: float, until: float) -> Iterator[Funds]:
    """An account that pays now and then, first after a minute; it is looked at every minute."""
    funds = Funds()
    for minute in range(int(until / MINUTE)):
        payments = int((minute * MINUTE - MINUTE + every) / every)
        funds.saw(int((balance - each * payments) * ETHER), GWEI, NOON + minute * MINUTE)
        yield funds


def test_of_an_account_that_nobody_saw_nothing_is_known() -> None:
    funds = Funds()
    assert funds.hours_left() is None
    assert funds.problem(HOURS) == ""


def test_an_account_that_was_seen_once_spends_nothing_yet() -> None:
    funds = held((0, 1.0))
    assert funds.hours_left() is None
    assert funds.problem(HOURS) == ""


def test_an_account_that_spends_nothing_lasts() -> None:
    funds = held(*((hour * HOUR, 1.0) for hour in range(20)))
    assert funds.hours_left() is None
    assert funds.problem(HOURS) == ""


def test_an_account_lasts_by_what_it_spends() -> None:
    funds = held(*((hour * HOUR, 10.0 - hour * 0.1) for hour in range(11)))
    assert funds.hours_left() == pytest.approx(90.0)
    assert funds.problem(HOURS) == ""


def test_an_account_that_is_nearly_empty_is_a_problem() -> None:
    funds = held(*((hour * HOUR, 3.0 - hour * 0.1) for hour in range(11)))
    assert funds.problem(HOURS) == (
        "it holds 2 ETH, which lasts for 20.0 h at the rate of late (less than 24 h)"
    )
    assert funds.problem(19) == ""


def test_what_is_paid_in_is_not_taken_for_thrift() -> None:
    spent = [(hour * HOUR, 10.0 - hour * 0.5) for hour in range(10)]
    topped_up = [*spent, (10 * HOUR, 105.0), (11 * HOUR, 104.5)]
    funds = held(*topped_up)
    assert funds.hours_left() == pytest.approx(104.5 / (5.0 / 11), rel=0.05)


def test_a_problem_ends_when_ether_is_sent() -> None:
    funds = held(*((hour * HOUR, 3.0 - hour * 0.1) for hour in range(11)))
    funds.saw(100 * ETHER, GWEI, NOON + 11 * HOUR)
    assert funds.problem(HOURS) == ""


@pytest.mark.parametrize("balance", [0, 1, GWEI * LEAST_GAS])
def test_dust_pays_for_nothing(balance: int) -> None:
    funds = Funds()
    funds.saw(balance, GWEI, NOON)
    assert "which pays for next to nothing" in funds.problem(HOURS)


def test_an_account_that_can_pay_for_something_is_no_problem_yet() -> None:
    funds = Funds()
    funds.saw(GWEI * LEAST_GAS + 1, GWEI, NOON)
    assert funds.problem(HOURS) == ""


def test_what_dust_is_depends_on_what_gas_costs() -> None:
    assert held((0, 0.05), price=GWEI).problem(HOURS) == ""
    assert held((0, 0.05), price=100 * GWEI).problem(HOURS) != ""


def test_an_empty_account_is_a_problem_where_gas_costs_nothing() -> None:
    assert held((0, 0.0), price=0).problem(HOURS) != ""


def test_what_is_spent_at_once_is_spread_over_hours() -> None:
    assert held((0, 10.0), (59, 9.0)).hours_left() == pytest.approx(27.0)
    assert held((0, 10.0), (59, 9.0)).problem(HOURS) == ""


def test_what_was_spent_a_day_ago_does_not_count() -> None:
    funds = held((0, 100.0), (60, 10.0), (HISTORY + 100, 10.0), (HISTORY + HOUR, 10.0))
    assert funds.hours_left() is None


def test_what_was_spent_within_a_day_counts_however_often_is_looked() -> None:
    """A proposer may send twice a day, and is looked at every minute."""
    *_, funds = spending(balance=10.0, each=1.0, every=8 * HOUR, until=23 * HOUR)
    left = funds.hours_left()
    assert left is not None
    assert 7 * 7 <= left <= 7 * 12


@pytest.mark.parametrize("every", [2 * MINUTE, 10 * MINUTE, HOUR])
@pytest.mark.parametrize("lasts", [2.0, 4.0])
def test_nobody_is_alarmed_about_an_account_that_lasts_for_days(every: float, lasts: float) -> None:
    """However short a time after an operator was started anew it pays for the first time."""
    balance = 10.0
    each = balance / (lasts * 24 * HOUR) * every
    for minute, funds in enumerate(spending(balance, each, every, until=6 * HOUR)):
        assert funds.problem(HOURS) == "", f"after {minute} minutes"


@pytest.mark.parametrize("every", [2 * MINUTE, 10 * MINUTE, HOUR])
def test_everybody_hears_of_an_account_that_lasts_for_hours(every: float) -> None:
    balance, lasts = 10.0, 8 * HOUR
    *_, funds = spending(balance, balance / lasts * every, every, until=4 * HOUR)
    assert "at the rate of late" in funds.problem(HOURS)


@given(
    st.lists(
        st.tuples(st.floats(0, 2 * HISTORY), st.integers(0, 10**30), st.integers(0, 10**15)),
        max_size=30,
    )
)
def test_nothing_that_was_seen_is_too_much(looks: list[tuple[float, int, int]]) -> None:
    funds = Funds()
    times = accumulate(after for after, _, _ in looks)
    for now, (_, balance, price) in zip(times, looks, strict=True):
        funds.saw(balance, price, now)
        left = funds.hours_left()
        assert left is None or left >= 0
        assert len(funds.problem(HOURS)) < 200


def test_a_year_of_looks_takes_no_more_memory_than_a_day() -> None:
    funds = Funds()
    for minute in range(5000):
        funds.saw(ETHER, GWEI, NOON + minute * MINUTE)
    assert len(funds._spent) <= 24 * 60


@pytest.mark.parametrize(
    ("wei", "text"),
    [
        (0, "0 ETH"),
        (1, "0 ETH"),
        (10**12, "0.000001 ETH"),
        (ETHER // 2, "0.5 ETH"),
        (ETHER, "1 ETH"),
        (10 * ETHER, "10 ETH"),
        (100 * ETHER + ETHER // 100, "100.01 ETH"),
        (1_234_567 * 10**12 + 999, "1.234567 ETH"),
        (2**256 - 1, "115792089237316195423570985008687907853269984665640564039457.584007 ETH"),
    ],
)
def test_an_amount_is_told_in_ether(wei: int, text: str) -> None:
    assert ether(wei) == text
