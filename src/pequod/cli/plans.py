"""Plans for people: what happens to which object, field by field."""

from rich.text import Text

from pequod.api.graph import Violation
from pequod.base.logs import one_line
from pequod.cli import terminal
from pequod.cli.planning import Judged
from pequod.graph.plan import Change, Plan

_MARKS = {"Create": "+", "Update": "~", "Delete": "-", "Adopt": "=", "Recreate": "±"}
_COLOURS = {
    "Create": "green",
    "Update": "yellow",
    "Delete": "red",
    "Adopt": "cyan",
    "Recreate": "magenta",
}
_SEVERITIES = {"Error": "red", "Warning": "yellow", "Info": "cyan"}


def print_judged(judged: Judged) -> None:
    """One document: what is against it, what would happen, and that in half a line."""
    _print_violations(judged)
    if judged.plan is not None:
        _print_plan(judged.plan)
    for note in judged.notes:
        terminal.say(f"note: {note}")
    terminal.say(f"{judged.name}: {_summary(judged)}")


def _summary(judged: Judged) -> str:
    if judged.plan is not None:
        return judged.plan.summary
    return judged.unplanned or "refused, nothing would be applied"


def _print_plan(plan: Plan) -> None:
    for change in plan.changes:
        _print_change(change)
    for ref in plan.awaited:
        terminal.output.print(Text(f"? await {ref}").append("  others have to make it", "dim"))
    for ref in plan.left:
        terminal.output.print(Text(f"! leave {ref}").append("  it lives on by itself", "dim"))


def _print_violations(judged: Judged) -> None:
    for one in judged.violations:
        terminal.errors.print(_violation(one))


def _violation(found: Violation) -> Text:
    line = Text(f"{found.severity.lower()}: ", style=_SEVERITIES[found.severity])
    line.append(f"{one_line(found.path)} ", style="bold")
    return line.append(one_line(found.message, 2000), style="default")


def _print_change(change: Change) -> None:
    line = Text(f"{_MARKS[change.action]} ", style=_COLOURS[change.action])
    line.append(f"{change.action.lower()} {change.ref}", style="default")
    if change.note:
        line.append(f"  {one_line(change.note, 500)}", style="dim")
    terminal.output.print(line)
    for one in change.differences:
        terminal.output.print(Text(f"    {one_line(str(one), 500)}"))
    if change.refused is not None:
        word, _, why = change.verdict.partition(": ")
        refused = Text(f"    {word}: ", style="red")
        terminal.output.print(refused.append(one_line(why, 1000), "default"))
