"""Delays grow, end growing, and spread."""

from hypothesis import given
from hypothesis import strategies as st

from pequod.base.backoff import Backoff, spread


@given(failures=st.integers(0, 10_000), chance=st.floats(0, 1, exclude_max=True))
def test_a_delay_is_never_longer_than_the_limit_nor_shorter_than_its_spread_allows(
    failures: int, chance: float
) -> None:
    backoff = Backoff(first=0.5, limit=300, spread=0.2)
    delay = backoff.delay(failures, lambda: chance)
    assert 0.4 <= delay <= 300


@given(failures=st.integers(1, 100))
def test_without_spread_delays_never_shrink(failures: int) -> None:
    backoff = Backoff(spread=0.0)
    assert backoff.delay(failures) <= backoff.delay(failures + 1)


def test_periods_drift_apart() -> None:
    periods = {spread(60, 0.1) for _ in range(50)}
    assert len(periods) > 10
    assert all(54 <= period <= 66 for period in periods)
