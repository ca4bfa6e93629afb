"""What a person sees: progress, results, and failures with a way out."""

import asyncio
import errno
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

from rich.console import Console

from pequod.dev.builds import Progress as BuildProgress
from pequod.dev.builds import Report
from pequod.dev.failure import DevError

T = TypeVar("T")

_WIDE = 160
"""Columns where nobody's terminal says how many there are: a file, a pipe, a log."""

output = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else _WIDE)
errors = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Print text as it is: for results that somebody copies or a program reads."""
    output.print(text, markup=False)


def fail(problem: str, next_step: str) -> NoReturn:
    """Say what is wrong and what to do next, and end with exit code 1."""
    errors.print(f"[bold red]error:[/] {_plain(problem)}\n{_plain(next_step)}")
    raise SystemExit(1)


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a command; what a person can mend ends as a sentence, not as a traceback."""
    with explained():
        return asyncio.run(_cancelled_by_signals(main))


@contextmanager
def explained() -> Iterator[None]:
    """Turn every failure that a person can mend into a sentence and an exit code."""
    try:
        yield
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise SystemExit(130) from None
    except DevError as error:
        fail(error.problem, error.next_step)
    except OSError as error:
        fail(*_system_failure(error))


async def _cancelled_by_signals(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Let a signal end a command through every `finally` on the way; a second one changes nothing.

    Cleaning up takes a moment, and must not be interrupted by somebody who cannot wait for it.
    """
    task = asyncio.current_task()
    assert task is not None, "runs as a task"

    def cancel() -> None:
        if not task.cancelling():
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, cancel)
    return await main()


def _system_failure(error: OSError) -> tuple[str, str]:
    """What the operating system refused, and what to do about it."""
    place = f" ({error.filename})" if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"the disk is full{place}", "Free some space and run the command again."
    return (
        f"the operating system refused: {error.strerror or error}{place}",
        "Check the permissions of what it names, and run the command again.",
    )


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show that something is going on which takes more than a moment."""
    if not errors.is_terminal:
        errors.print(f"{what} …")
        yield
        return
    with errors.status(what):
        yield


@contextmanager
def build_progress() -> Iterator[Report]:
    """Show a build: a bar in a terminal, a line now and then elsewhere."""
    if not errors.is_terminal:
        yield _line_report()
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[detail]}", markup=True),
    )
    with Progress(*columns, console=errors, transient=True) as bars:
        shown: dict[str, Any] = {}

        def report(step: BuildProgress) -> None:
            if step.what not in shown:
                shown[step.what] = bars.add_task(step.what, total=None, detail="")
            bars.update(
                shown[step.what],
                total=step.total or None,
                completed=step.done,
                detail=step.detail[-50:],
            )

        yield report


def _line_report() -> Report:
    """A line at the start of a build, at each tenth of it, and at most one for the same text."""
    said: set[str] = set()

    def report(step: BuildProgress) -> None:
        tenth = f" {10 * (10 * step.done // step.total)}%" if step.total else ""
        line = f"{step.what}{tenth}"
        if line not in said:
            said.add(line)
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    return report


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
