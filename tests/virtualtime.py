"""An event loop whose clock jumps to the next timer: hours pass in milliseconds."""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

P = ParamSpec("P")


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: what it would have waited for is added to the clock."""

    elapsed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or timeout == 0:
            return found
        if timeout is None:
            raise AssertionError("everything waits, and no timer will ever wake anything")
        self.elapsed += max(timeout, 0.0)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop on virtual time; nothing in it may wait for a thread or a socket."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return 1000.0 + self._jumping.elapsed


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main)


def virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test on virtual time."""

    @functools.wraps(test)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs))

    return wrapped
