"""How a live object does: the rules of kstatus (sigs.k8s.io/cli-utils), as one pure function.

First comes what holds for every object: deletion, an unobserved generation, `Reconciling`,
`Stalled`. Then the rule of its kind, from one table; what is not there goes by its `Ready`. For
built-in kinds without a rule in kstatus the table has what Argo CD asks of them. `Failed` says that
waiting longer will not help by itself.

Objects are other people's: a field of a wrong shape is no error here, only a reason to wait.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from pequod.base.logs import one_line
from pequod.graph import podstatus
from pequod.graph.podstatus import CONTENT, UNSEEN, Condition, Finding, Live, Rule, State
from pequod.kube.objects import MISFITS

__all__ = ["CURRENT", "Health", "State", "health"]

_LONGEST = 256
_OBSERVED = "status.observedGeneration"
_ABNORMAL: dict[str, State] = {"Reconciling": "InProgress", "Stalled": "Failed"}
_CONDITIONS_OF_V1 = "autoscaling.alpha.kubernetes.io/conditions"


class Health(msgspec.Struct, frozen=True, gc=False):
    """How an object does, in one word and one sentence."""

    state: State
    message: str = ""


CURRENT = Health("Current")


def health(object_: Mapping[str, Any]) -> Health:
    """How a live object does; whatever it holds, there is an answer."""
    try:
        found = _judged(Live(object_))
    except podstatus.MisfitError as misfit:
        found = Finding("InProgress", str(misfit))
    if found is CONTENT:
        return CURRENT
    # Escaping makes a text longer: it is cut when that is done, with room for the ellipsis.
    return Health(found.state, one_line(one_line(found.text), _LONGEST - 1))


def _judged(live: Live) -> Finding:
    rule = _TABLE.get(live.kind, _custom)
    if gone := _terminating(live):
        return gone
    if rule is _exists:
        return CONTENT
    return _unsettled(live) or rule(live)


def _terminating(live: Live) -> Finding | None:
    if not live.text("metadata.deletionTimestamp"):
        return None
    names = [one for one in live.value("metadata.finalizers", []) if isinstance(one, str)]
    waits = f"; finalizers: {', '.join(names)}" if names else ""
    return Finding("Terminating", f"it is being deleted{waits}")


def _unsettled(live: Live) -> Finding | None:
    """What its controller says of an object of any kind, before the rule of the kind is asked."""
    newest, seen = live.generation("metadata.generation"), live.generation(_OBSERVED)
    if seen is not None and (seen < 0 or newest not in {None, seen}):
        last = f", the last one was {seen}" if seen > 0 else ""
        which = "it" if newest is None else f"generation {newest}"
        return Finding("InProgress", f"its controller has not looked at {which} yet{last}")
    for condition in live.conditions:
        if condition.status == "True" and condition.type in _ABNORMAL:
            return Finding(_ABNORMAL[condition.type], str(condition))
    return None


def _observed(rule: Rule) -> Rule:
    """A rule for kinds whose numbers mean nothing before a controller has signed them."""

    def observed(live: Live) -> Finding:
        generations = (live.generation("metadata.generation"), live.generation(_OBSERVED))
        return UNSEEN if None in generations else rule(live)

    return observed


def _true(name: str) -> Rule:
    """A rule for kinds of which one condition says everything."""

    def true(live: Live) -> Finding:
        return CONTENT if live.holds(name) else Finding("InProgress", live.about(name))

    return true


def _phased(states: Mapping[str, State]) -> Rule:
    """A rule for kinds with a phase: one that is missing or not named here will change."""

    def phased(live: Live) -> Finding:
        state = states.get(live.text("status.phase"), "InProgress")
        return CONTENT if state == "Current" else Finding(state, podstatus.phase(live))

    return phased


def _exists(_live: Live) -> Finding:
    return CONTENT


_ready = _true("Ready")


def _custom(live: Live) -> Finding:
    return CONTENT if live.condition("Ready") is None else _ready(live)


def _service(live: Live) -> Finding:
    if live.text("spec.type") != "LoadBalancer":
        return CONTENT
    if not live.text("spec.clusterIP"):
        return Finding("InProgress", "it has no cluster IP yet")
    # Whether anything gives it an address depends on the cluster; kstatus does not ask either.
    return CONTENT


def _definition(live: Live) -> Finding:
    """Refused names stay so until somebody changes them; `Installing` is only a moment."""
    for name in ("NamesAccepted", "Established"):
        found = live.condition(name)
        if found is None or found.status != "True":
            refused = found and found.status == "False" and found.reason != "Installing"
            return Finding("Failed" if refused else "InProgress", live.about(name))
    return CONTENT


def _autoscaler(live: Live) -> Finding:
    """Metrics are missing whenever all pods are new: only a wrong target cannot be waited for."""
    known = {one.type: one for one in live.conditions or _conditions_of_v1(live)}
    for name in ("AbleToScale", "ScalingActive"):
        found = known.get(name, Condition(name, "", "", ""))
        if found.status != "True" and found.reason != "ScalingDisabled":
            state: State = "Failed" if found.reason == "InvalidSelector" else "InProgress"
            return Finding(state, str(found))
    return CONTENT


def _conditions_of_v1(live: Live) -> list[Condition]:
    """What `autoscaling/v1` has an annotation for, and no field."""
    annotations = live.at("metadata.annotations")
    text = annotations.get(_CONDITIONS_OF_V1) if isinstance(annotations, Mapping) else None
    if not isinstance(text, str):
        return []
    try:
        return podstatus.conditions(msgspec.json.decode(text, type=list[Any]))
    except MISFITS:
        return []


def _existing() -> dict[tuple[str, str], Rule]:
    """The kinds of which there is no more to say than that they are there."""
    kinds = {
        "": "ConfigMap Endpoints Event LimitRange PodTemplate ResourceQuota Secret ServiceAccount",
        "admissionregistration.k8s.io": "MutatingAdmissionPolicyBinding "
        "MutatingWebhookConfiguration ValidatingAdmissionPolicyBinding "
        "ValidatingWebhookConfiguration",
        "apps": "ControllerRevision",
        "batch": "CronJob",
        "coordination.k8s.io": "Lease",
        "discovery.k8s.io": "EndpointSlice",
        "events.k8s.io": "Event",
        "networking.k8s.io": "Ingress IngressClass NetworkPolicy",
        "node.k8s.io": "RuntimeClass",
        "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding Role RoleBinding",
        "scheduling.k8s.io": "PriorityClass",
        "storage.k8s.io": "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttributesClass",
    }
    return {(group, kind): _exists for group, names in kinds.items() for kind in names.split()}


_deployment = _observed(podstatus.deployment)
_replica_set = _observed(podstatus.replica_set)
_daemon_set = _observed(podstatus.daemon_set)

_TABLE: dict[tuple[str, str], Rule] = {
    **_existing(),
    ("", "Namespace"): _phased({"Active": "Current", "Terminating": "Terminating"}),
    ("", "PersistentVolume"): _phased(
        {"Available": "Current", "Bound": "Current", "Released": "Current", "Failed": "Failed"}
    ),
    ("", "PersistentVolumeClaim"): _phased({"Bound": "Current", "Lost": "Failed"}),
    ("", "Pod"): podstatus.pod,
    ("", "ReplicationController"): _replica_set,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apiregistration.k8s.io", "APIService"): _true("Available"),
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _observed(podstatus.stateful_set),
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("batch", "Job"): podstatus.job,
    ("extensions", "DaemonSet"): _daemon_set,
    ("extensions", "Deployment"): _deployment,
    ("extensions", "ReplicaSet"): _replica_set,
    ("policy", "PodDisruptionBudget"): _observed(_exists),
}
