"""How long to wait before trying again: longer each time, and never all at once."""

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponentially growing delays, spread so that many who failed together do not return so."""

    first: float = 0.5
    factor: float = 2.0
    limit: float = 300.0
    spread: float = 0.2
    """The largest part of a delay that is taken off it at random."""

    def delay(self, failures: int, chance: Callable[[], float] = random.random) -> float:
        """Seconds to wait after so many failures in a row; `chance` yields numbers in [0, 1)."""
        exponent = min(max(failures, 1) - 1, 64)
        grown = min(self.first * self.factor**exponent, self.limit)
        return grown * (1 - self.spread * chance())


def spread(seconds: float, part: float = 0.1) -> float:
    """About so many seconds: up to `part` more or less, so that periods drift apart."""
    return seconds * (1 + part * (2 * random.random() - 1))  # noqa: S311 -- no secret
