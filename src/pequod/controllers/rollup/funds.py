"""For how long a signer can go on paying. Pure."""

from collections import deque
from dataclasses import dataclass, field

HISTORY = 24 * 3600.0
"""Seconds over which is looked back."""
_SAMPLES = 400
_HOUR = 3600.0
_LEAST = 60.0
"""Seconds from which on what was spent says something about how fast it is."""
ETHER = 10**18
LEAST_GAS = 1_000_000
"""Gas that an account must be able to pay for: some twenty plain transactions."""


@dataclass(slots=True)
class Funds:
    """What an account held, over time."""

    balance: int | None = None
    """In wei."""
    gas_price: int = 0
    _samples: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_SAMPLES))

    def saw(self, balance: int, gas_price: int, now: float) -> None:
        """It was seen to hold an amount."""
        self.balance, self.gas_price = balance, gas_price
        self._samples.append((now, balance))
        while self._samples and now - self._samples[0][0] > HISTORY:
            self._samples.popleft()

    def hours_left(self) -> float | None:
        """How long the balance lasts at the rate of late; None when nothing is spent.

        What is paid in does not count as not spent.
        """
        if self.balance is None or len(self._samples) <= 1:
            return None
        spent = sum(
            max(before - after, 0)
            for (_, before), (_, after) in zip(self._samples, list(self._samples)[1:], strict=False)
        )
        elapsed = self._samples[-1][0] - self._samples[0][0]
        if not spent or elapsed < _LEAST:
            return None
        return self.balance / (spent / elapsed) / _HOUR

    def problem(self, hours: int) -> str:
        """Why the account is short of funds; empty when it is not."""
        if self.balance is None:
            return ""
        held = f"it holds {ether(self.balance)}"
        if self.balance <= self.gas_price * LEAST_GAS:
            return f"{held}, which pays for next to nothing"
        left = self.hours_left()
        if left is not None and left < hours:
            return f"{held}, which lasts for {left:.1f} h at the rate of late (less than {hours} h)"
        return ""


def ether(wei: int) -> str:
    """An amount for people."""
    text = f"{wei // ETHER}.{wei % ETHER:018d}"[:-12].rstrip("0").rstrip(".")
    return f"{text or '0'} ETH"
