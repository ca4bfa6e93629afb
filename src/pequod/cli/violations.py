"""What is wrong with an input, on the error output."""

from collections.abc import Sequence

from rich.text import Text

from pequod.base.logs import one_line
from pequod.cli import terminal
from pequod.evaluator.answers import Violation

_COLOURS = {"Error": "red", "Warning": "yellow", "Info": "cyan"}
_LONGEST = 2000


def print_violations(violations: Sequence[Violation]) -> None:
    """One line each: how bad, where, what, and where the rule is written."""
    for violation in violations:
        line = Text(f"{violation.severity.lower()}: ", style=_COLOURS[violation.severity])
        line.append(f"{one_line(violation.path)} ", style="bold")
        line.append(one_line(violation.message, _LONGEST), style="default")
        if violation.position:
            line.append(f" ({one_line(violation.position)})", style="dim")
        terminal.errors.print(line)
