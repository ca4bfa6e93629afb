"""Which pod keeps a workload from being ready, and what it says."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pequod.base.logs import one_line

_LONGEST = 240
_WAITING_IS_FINE = frozenset({"ContainerCreating", "PodInitializing"})


def selector(workload: Mapping[str, Any]) -> str:
    """The label selector of a workload's pods; empty when it has none that is simple."""
    spec = workload.get("spec")
    labels = (spec.get("selector") or {}).get("matchLabels") if isinstance(spec, dict) else None
    if not isinstance(labels, dict):
        return ""
    return ",".join(f"{name}={value}" for name, value in sorted(labels.items()))


def described(pods: Iterable[Mapping[str, Any]]) -> str:
    """The first pod that says what is wrong, and what it says; empty when none does."""
    for pod in pods:
        for said in _complaints(pod):
            name = (pod.get("metadata") or {}).get("name", "")
            return one_line(f"Pod/{name}: {said}", _LONGEST)
    return ""


def _complaints(pod: Mapping[str, Any]) -> Iterator[str]:
    status = pod.get("status")
    if not isinstance(status, dict):
        return
    for part in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(part) or ():
            yield from _container(container)
    for condition in status.get("conditions") or ():
        unscheduled = condition.get("type") == "PodScheduled" and condition.get("status") == "False"
        if unscheduled:
            yield f"{condition.get('reason', '')}: {condition.get('message', '')}"


def _container(container: Mapping[str, Any]) -> Iterator[str]:
    state = container.get("state") or {}
    before = (container.get("lastState") or {}).get("terminated") or {}
    name = container.get("name", "")
    waiting, ended = state.get("waiting"), state.get("terminated")
    if waiting and waiting.get("reason") not in _WAITING_IS_FINE:
        last = f" (it ended before with code {before['exitCode']})" if "exitCode" in before else ""
        yield f"container {name} waits: {_said(waiting)}{last}"
    if ended and ended.get("exitCode"):
        # What a program says in the end is its own business.
        yield f"container {name} ended with code {ended['exitCode']} ({ended.get('reason', '')})"
    if state.get("running") and container.get("ready") is False:
        yield f"container {name} runs and is not ready"


def _said(state: Mapping[str, Any]) -> str:
    return ": ".join(str(state[part]) for part in ("reason", "message") if state.get(part))
