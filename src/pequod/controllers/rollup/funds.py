"""For how long a signer can go on paying. Pure."""

from collections import deque
from dataclasses import dataclass, field

HISTORY = 24 * 3600.0
"""Seconds over which is looked back."""
_STEP = 300.0
"""Seconds that one entry of the history stands for."""
_LEAST = 3 * 3600.0
"""Seconds that what was spent is spread over at the least: payments come in bursts."""
_HOUR = 3600.0
ETHER = 10**18
LEAST_GAS = 1_000_000
"""Gas that an account must be able to pay for: some twenty plain transactions."""


@dataclass(slots=True)
class Funds:
    """What an account held, over time."""

    balance: int | None = None
    """In wei."""
    gas_price: int = 0
    _spent: deque[tuple[float, int]] = field(default_factory=deque)
    """What was spent in each step of the history that something was seen in."""
    _since: float | None = None
    _now: float = 0.0

    def saw(self, balance: int, gas_price: int, now: float) -> None:
        """It was seen to hold an amount; what is paid in does not count as not spent."""
        spent = max((self.balance or 0) - balance, 0)
        self.balance, self.gas_price = balance, gas_price
        if self._since is None:
            self._since = now
        if self._spent and now - self._spent[-1][0] < _STEP:
            began, before = self._spent.pop()
            self._spent.append((began, before + spent))
        else:
            self._spent.append((now, spent))
        while now - self._spent[0][0] > HISTORY:
            self._since = self._spent.popleft()[0]
        self._now = now

    def hours_left(self) -> float | None:
        """How long the balance lasts at the rate of late; None when nothing is spent."""
        spent = sum(amount for _, amount in self._spent)
        if self.balance is None or self._since is None or not spent:
            return None
        elapsed = max(self._now - self._since, _LEAST)
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
