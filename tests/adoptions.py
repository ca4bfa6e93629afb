"""Objects as other tools leave them behind, for tests of what becomes of them."""

import json
from pathlib import Path
from typing import Any

from graphs import Graphs, Object, deployment

LABEL = "pequod.io/graph"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
DEPLOYMENTS = "apps/v1/deployments"


def explicit(*resources: Object, **more: Any) -> Object:  # noqa: ANN401 -- any field of adopt
    """Adopt the objects of a list."""
    return {"mode": "Explicit", "resources": [*resources], **more}


def by_label(**more: Any) -> Object:  # noqa: ANN401 -- any field of adopt
    """Adopt what carries the label `team=shop`."""
    return {"mode": "LabelSelector", "labelSelector": {"matchLabels": {"team": "shop"}}, **more}


def resource(kind: str, name: str, api_version: str = "v1", **more: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "name": name, **more}


def web(**more: str) -> Object:
    return resource("Deployment", "web", "apps/v1", **more)


def kubectl_apply(graphs: Graphs, folder: Path, *objects: Object, **options: str) -> None:
    """Apply as people do it; on the client's side, unless options say otherwise."""
    for made in objects:
        file = folder / f"{made['kind']}-{made['metadata']['name']}.json"
        file.write_text(json.dumps(made))
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        graphs.api.kubectl("apply", *flags, "-n", graphs.namespace, "-f", str(file))


def legacy(*, replicas: int = 0) -> Object:
    """A Deployment with a label, an annotation and a variable that no node names."""
    made = deployment("web", replicas=replicas)
    made["metadata"] |= {"labels": {"old": "yes", "team": "shop"}, "annotations": {"tool/x": "1"}}
    container_of(made)["env"] = [{"name": "OLD", "value": "1"}, {"name": "KEPT", "value": "1"}]
    return made


def wanted(*, replicas: int | None = 0) -> Object:
    """What the node of that Deployment asks for."""
    made = deployment("web", replicas=replicas)
    container_of(made)["env"] = [{"name": "KEPT", "value": "2"}]
    return made


def container_of(made: Object) -> Object:
    (container,) = made["spec"]["template"]["spec"]["containers"]
    assert isinstance(container, dict)
    return container


def managers(made: Object) -> dict[str, str]:
    """Who manages an object itself, and how."""
    return {
        entry["manager"]: entry["operation"]
        for entry in made["metadata"].get("managedFields", ())
        if not entry.get("subresource")
    }


def previous_managers(graphs: Graphs, name: str, id_: str) -> list[str]:
    return list(graphs.status(name)["nodeStatus"][id_].get("previousManagers", ()))


def is_adopted(graphs: Graphs, name: str) -> bool:
    return bool(graphs.condition(name, "Adopted").get("status") == "True")


def assert_all_ours(graphs: Graphs, uid: str) -> None:
    """The Deployment is as its node says, and nothing of what was before is left on it."""
    live = graphs.live(DEPLOYMENTS, "web")
    metadata = live["metadata"]
    assert metadata["labels"] == {LABEL: uid, "app.kubernetes.io/managed-by": "pequod"}
    assert metadata.get("annotations", {}).keys() <= {"deployment.kubernetes.io/revision"}
    assert container_of(live)["env"] == [{"name": "KEPT", "value": "2"}]
    assert managers(live) == {"pequod-operator": "Apply"}
