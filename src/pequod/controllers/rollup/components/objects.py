"""Objects that every component consists of."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pequod.api.rollup import Resources
from pequod.controllers.rollup.components.chain import Chain, Component
from pequod.kube.objects import Object

CONFIG_DIGEST = "rollup.oplabs.io/config-digest"
"""Annotation of a pod: what its configuration was when it started."""
_USER = 1000
_TMP = {"name": "tmp", "emptyDir": {}}


def metadata(chain: Chain, component: Component) -> Object:
    """Name and labels of an object."""
    return {"name": chain.object_name(component), "labels": labels(chain, component)}


def labels(chain: Chain, component: Component) -> dict[str, str]:
    """What everything of a component is found by."""
    return selector(chain, component) | {
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/part-of": "opstack",
    }


def selector(chain: Chain, component: Component) -> dict[str, str]:
    """What the pods of a component are found by; it can never change."""
    return {
        "app.kubernetes.io/name": f"op-{component}",
        "app.kubernetes.io/instance": chain.name,
    }


def config_map(
    chain: Chain,
    component: Component,
    data: Mapping[str, bytes],
    binary: Mapping[str, bytes] | None = None,
) -> Object:
    """Files that anybody may read."""
    object_: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(chain, component),
        "data": {name: content.decode() for name, content in data.items()},
    }
    if binary:
        packed = {name: b64encode(content).decode() for name, content in binary.items()}
        object_["binaryData"] = packed
    return object_


def secret(chain: Chain, component: Component, data: Mapping[str, str]) -> Object:
    """What nobody but the component may read."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(chain, component),
        "type": "Opaque",
        "data": {name: b64encode(value.encode()).decode() for name, value in data.items()},
    }


def service(chain: Chain, component: Component, ports: Sequence[Object]) -> Object:
    """Where a component is reached inside the cluster."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(chain, component),
        "spec": {
            "type": "ClusterIP",
            "selector": selector(chain, component),
            "ports": [
                {
                    "name": port["name"],
                    "port": port["containerPort"],
                    "targetPort": port["name"],
                    "protocol": port.get("protocol", "TCP"),
                }
                for port in ports
            ],
        },
    }


def stateful_set(chain: Chain, component: Component, template: Object) -> Object:
    """At most one pod, whatever happens: the next one starts when the last is known to be gone."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata(chain, component),
        "spec": {
            "replicas": 1,
            "serviceName": chain.object_name(component),
            # In order, a pod that never became ready would never be replaced by a better one.
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": selector(chain, component)},
            "template": template,
        },
    }


def deployment(chain: Chain, component: Component, template: Object) -> Object:
    """One pod; an update ends the old one before it starts the new one."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(chain, component),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": selector(chain, component)},
            "template": template,
        },
    }


def pod(  # noqa: PLR0913 -- what pods differ in
    chain: Chain,
    component: Component,
    containers: Sequence[Object],
    *,
    config: str,
    grace: int,
    volumes: Sequence[Object] = (),
    before: Sequence[Object] = (),
) -> Object:
    """The template of a component's pod: no rights on the node, none in the cluster."""
    spec: Object = {
        "automountServiceAccountToken": False,
        # Variables of Services called op-… would be read as settings by the programs.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [*containers],
        "volumes": [*volumes, _TMP],
    }
    if before:
        spec["initContainers"] = [*before]
    return {
        "metadata": {
            "labels": labels(chain, component),
            "annotations": {CONFIG_DIGEST: config},
        },
        "spec": spec,
    }


def container(  # noqa: PLR0913 -- what containers differ in
    name: str,
    image: str,
    command: Sequence[str],
    arguments: Sequence[str],
    *,
    resources: Resources,
    mounts: Sequence[Object] = (),
    environment: Sequence[Object] = (),
    ports: Sequence[Object] = (),
    health: Object | None = None,
) -> Object:
    """A container that can change nothing but its volumes."""
    made: Object = {
        "name": name,
        "image": image,
        "command": [*command],
        "args": [*arguments],
        "env": [{"name": "HOME", "value": "/tmp"}, *environment],  # noqa: S108 -- a volume
        "volumeMounts": [*mounts, {"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 -- a volume
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    asked: dict[str, Any] = msgspec.to_builtins(resources)
    if asked:
        made["resources"] = asked
    if ports:
        made["ports"] = [*ports]
    if health is not None:
        made |= _probes(health)
    return made


def port(name: str, number: int, protocol: str = "TCP") -> Object:
    """A port of a container."""
    made: Object = {"name": name, "containerPort": number}
    return made if protocol == "TCP" else made | {"protocol": protocol}


def health(path: str, port_name: str) -> Object:
    """How it is seen whether a program answers."""
    return {"httpGet": {"path": path, "port": port_name}}


def _probes(check: Object) -> Object:
    """Ten minutes to start, out of the Service at once, started again after two minutes."""
    return {
        "startupProbe": check | {"periodSeconds": 5, "failureThreshold": 120, "timeoutSeconds": 5},
        "readinessProbe": check | {"periodSeconds": 5, "failureThreshold": 3, "timeoutSeconds": 5},
        "livenessProbe": check | {"periodSeconds": 20, "failureThreshold": 6, "timeoutSeconds": 10},
    }


def from_secret(variable: str, secret_name: str, key: str) -> Object:
    """A variable whose value is in a Secret."""
    reference = {"name": secret_name, "key": key}
    return {"name": variable, "valueFrom": {"secretKeyRef": reference}}


def mounted(name: str, path: str, *, read_only: bool = True) -> Object:
    """A volume inside a container."""
    made: Object = {"name": name, "mountPath": path}
    return made | {"readOnly": True} if read_only else made
