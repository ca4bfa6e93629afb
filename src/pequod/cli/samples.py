"""The custom resources of a control plane as a table."""

from typing import Any

from rich.table import Table

from pequod.api import KINDS
from pequod.kube.questions import Questions


async def samples_table(questions: Questions) -> Table:
    """Every object of ours, with what it says of itself."""
    table = Table("Kind", "Namespace", "Name", "Phase", "Ready", "Status", box=None, pad_edge=False)
    for resource in KINDS:
        definition = resource.definition
        path = f"/apis/{definition.api_version}/{definition.plural}"
        listed = await questions.read(path)
        if listed is None:
            table.add_row(definition.kind, "", "", "", "", "cannot be listed right now")
            continue
        for item in listed["items"]:
            table.add_row(definition.kind, *_row(item))
    return table


def _row(item: dict[str, Any]) -> tuple[str, ...]:
    metadata, status = item["metadata"], item.get("status", {})
    conditions = status.get("conditions", ())
    ready = next((condition for condition in conditions if condition["type"] == "Ready"), None)
    return (
        metadata.get("namespace", ""),
        metadata["name"],
        status.get("phase", ""),
        ready["status"] if ready else "Unknown",
        ready["message"] if ready else "no controller has looked at it yet",
    )
