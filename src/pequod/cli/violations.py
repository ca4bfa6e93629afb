"""What is wrong with an input, on the error output."""

from collections.abc import Sequence

from pequod.cli import terminal
from pequod.evaluator.answers import Violation

_COLOURS = {"Error": "red", "Warning": "yellow", "Info": "cyan"}


def print_violations(violations: Sequence[Violation]) -> None:
    """One line each: how bad, where, what, and where the rule is written."""
    for violation in violations:
        colour = _COLOURS[violation.severity]
        place = f" [dim]({_plain(violation.position)})[/]" if violation.position else ""
        terminal.errors.print(
            f"[{colour}]{violation.severity.lower()}:[/] [bold]{_plain(violation.path)}[/] "
            f"{_plain(violation.message)}{place}"
        )


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
