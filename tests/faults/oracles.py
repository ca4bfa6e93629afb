"""What must hold after every run, whatever has failed in it: O1 to O5 and O11 of the catalogue."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from faultproxy import Call
from graphs import Graphs, Object
from pequod.graph.model import GRAPH_LABEL

RESOURCES = ("serviceaccounts", "configmaps", "secrets", "services", "apps/v1/deployments")
_GRAPH = "/resourcegraphs/"
_KEPT = (_GRAPH, "/controllerrevisions/", "/secrets/transform-")
"""What is kept for a source, and is not an object of its graph."""
NUDGE = "nudge"
"""Who makes events by changing a label of that name."""
_PASSING = frozenset({"uid", "resourceVersion", "creationTimestamp", "managedFields"})
_ADDRESSES = frozenset({"clusterIP", "clusterIPs"})

State = dict[str, Any]


def objects(graphs: Graphs) -> dict[str, Object]:
    """Every object in the namespace that carries a graph's label, by kind and name."""
    found = {}
    for resource in RESOURCES:
        path = f"{graphs.path(resource)}?labelSelector={GRAPH_LABEL}"
        answer = graphs.api.get(path)
        assert answer.code == 200, answer.message
        kind = answer.body["kind"].removesuffix("List")
        for one in answer.body["items"]:
            found[f"{kind}/{one['metadata']['name']}"] = one
    return found


def uids(found: Mapping[str, Object]) -> dict[str, str]:
    return {name: str(one["metadata"]["uid"]) for name, one in found.items()}


def state(graphs: Graphs, name: str) -> State:
    """What there is at the end, without what differs from run to run."""
    answer = graphs.api.get(f"{graphs._path}/{name}")
    graph = answer.body if answer.code == 200 else None
    made = {key: _object(one) for key, one in objects(graphs).items()}
    text = json.dumps({"graph": _graph(graph) if graph else None, "objects": made})
    text = text.replace(graphs.namespace, "the-namespace")
    if graph is not None:
        text = text.replace(graph["metadata"]["uid"], "the-graph")
    normalised: State = json.loads(text)
    return normalised


def _graph(graph: Object) -> Object:
    status = graph["status"]
    return {
        "finalizers": graph["metadata"].get("finalizers", []),
        "observed": status["observedGeneration"] == graph["metadata"]["generation"],
        "phase": status.get("phase"),
        "conditions": {c["type"]: [c["status"], c["reason"]] for c in status["conditions"]},
        "nodes": {
            id_: {
                "phase": one.get("phase"),
                "error": one.get("lastError"),
                "details": one.get("readyDetails"),
                "digests": sorted(one.get("digests", {})),
            }
            for id_, one in status.get("nodeStatus", {}).items()
        },
        "inventory": sorted(
            ({**entry, "uid": bool(entry.get("uid"))} for entry in status.get("inventory", ())),
            key=lambda entry: str(entry["id"]),
        ),
    }


def _object(one: Object) -> Object:
    metadata = {key: value for key, value in one["metadata"].items() if key not in _PASSING}
    managers = [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in one["metadata"]["managedFields"]
        if entry["manager"] != NUDGE
    ]
    metadata["labels"] = {key: v for key, v in metadata["labels"].items() if key != NUDGE}
    metadata["managers"] = sorted(managers, key=lambda entry: json.dumps(entry, sort_keys=True))
    kept = {key: value for key, value in one.items() if key not in {"metadata", "status"}}
    if "spec" in kept:
        kept["spec"] = {key: v for key, v in kept["spec"].items() if key not in _ADDRESSES}
    return {**kept, "metadata": metadata}


def differences(expected: object, found: object, path: str = "") -> list[str]:
    """Where two states differ, for a person."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return [
            line
            for key in sorted(expected.keys() | found.keys())
            for line in differences(
                expected.get(key, "nothing"), found.get(key, "nothing"), f"{path}.{key}"
            )
        ]
    return [] if expected == found else [f"{path}: {found!r} instead of {expected!r}"]


def wrong_deletes(calls: Sequence[Call], graph: str, labelled: Iterable[str] = ()) -> list[str]:
    """O3: deletes whose UID neither the stored inventory nor an object with our label had.

    A label counts only for objects that were intended: the inventory names them without a UID.
    `labelled` are UIDs of which that is known although no answer has shown it.
    """
    stored: dict[str, str] = {}
    ours = {*labelled}
    problems = []
    for call in calls:
        body = _decoded(call.answer) if 200 <= call.code < 300 else {}
        if _GRAPH in call.path and body.get("kind") == "ResourceGraph":
            inventory = body.get("status", {}).get("inventory", ())
            stored = {entry["id"]: entry.get("uid", "") for entry in inventory}
        elif body.get("metadata", {}).get("labels", {}).get(GRAPH_LABEL) == graph:
            ours.add(str(body["metadata"]["uid"]))
        if call.method == "DELETE":
            uid = _decoded(call.body).get("preconditions", {}).get("uid")
            if uid and any(part in call.path for part in _KEPT):
                continue
            name = call.path.rpartition("/")[2]
            intended = any(f"_{name}_" in id_ and not known for id_, known in stored.items())
            if not uid:
                problems.append(f"DELETE {call.path} without a UID")
            elif uid not in stored.values() and not (intended and uid in ours):
                problems.append(f"DELETE {call.path} of {uid}, which was not known to be ours")
    return problems


def made_twice(calls: Sequence[Call]) -> list[str]:
    """Objects that were created more than once."""
    made = Counter(call.path for call in calls if call.code == 201)
    return [f"{path} was created {count} times" for path, count in made.items() if count > 1]


def _decoded(text: bytes) -> Object:
    try:
        decoded = json.loads(text)
    except ValueError:
        return {}
    return decoded if isinstance(decoded, dict) else {}


def shown(calls: Sequence[Call]) -> str:
    """A journal for a person."""
    first = calls[0].at if calls else 0.0
    return "\n".join(
        f"  {number:3} {call.at - first:6.2f} s {call.method:6} {call.code or 'none':4} {call.path}"
        for number, call in enumerate(calls, 1)
    )
