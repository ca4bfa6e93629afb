"""How live objects do, kind by kind: objects as API servers have them, and what is said of them."""

from typing import Any

import msgspec
import pytest

from pequod.graph.kstatus import CURRENT, Health, health

Object = dict[str, Any]
Said = list[tuple[Object, str]]
"""Objects, and the sentence about each."""

API = "apiregistration.k8s.io/v1 APIService"
BUDGET = "policy/v1 PodDisruptionBudget"
CUSTOM = "example.org/v1 Widget"
DAEMON_SET = "apps/v1 DaemonSet"
DEFINITION = "apiextensions.k8s.io/v1 CustomResourceDefinition"
DEPLOYMENT = "apps/v1 Deployment"
INGRESS = "networking.k8s.io/v1 Ingress"
REPLICA_SET = "apps/v1 ReplicaSet"
REPLICATION = "v1 ReplicationController"
STATEFUL_SET = "apps/v1 StatefulSet"


def live(kind: str, status: object = None, spec: object = None, **metadata: object) -> Object:
    version, name = kind.split()
    known = {"name": "it", "generation": 2, **metadata}
    return {"apiVersion": version, "kind": name, "metadata": known, "spec": spec, "status": status}


def condition(type_: str, status: str = "True", reason: str = "", message: str = "") -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def seen(*conditions: Object, **fields: object) -> Object:
    """A status whose controller has looked at the newest generation."""
    return {"observedGeneration": 2, "conditions": list(conditions), **fields}


def replicas(number: int, *conditions: Object, **fields: object) -> Object:
    """A status by which so many replicas are there and well, but for some fields."""
    names = ("updated", "ready", "available", "fullyLabeled", "current")
    counts = {"replicas": number} | {f"{name}Replicas": number for name in names}
    return seen(*conditions, **{**counts, **fields})


def deployment(status: Object, **spec: object) -> Object:
    return live(DEPLOYMENT, status, {"replicas": 3, "progressDeadlineSeconds": 600, **spec})


def stateful(status: Object, strategy: object = None) -> Object:
    return live(STATEFUL_SET, status, {"replicas": 3, "updateStrategy": strategy})


def rolling(partition: int) -> Object:
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}


def daemons(**fields: object) -> Object:
    scheduled = {f"{name}NumberScheduled": 4 for name in ("desired", "current", "updated")}
    status = seen(**{**scheduled, "numberReady": 4, "numberAvailable": 4, **fields})
    return live(DAEMON_SET, status)


def pod(phase: str, *conditions: Object, **waiting: str) -> Object:
    containers = [
        {"name": name, "state": {"waiting": {"reason": reason, "message": "back-off 5m"}}}
        for name, reason in waiting.items()
    ]
    containers.append({"name": "proxy", "state": {"running": {}}})
    status = {"phase": phase, "conditions": list(conditions), "containerStatuses": containers}
    return live("v1 Pod", status)


def job(*conditions: Object, **status: object) -> Object:
    return live("batch/v1 Job", {"conditions": list(conditions), **status})


def phased(kind: str, phase: str, **status: object) -> Object:
    return live(f"v1 {kind}", {"phase": phase, **status})


def told(kind: str, *conditions: Object) -> Object:
    return live(kind, {"conditions": list(conditions)})


def autoscaler(*conditions: Object, version: str = "v2", **annotations: str) -> Object:
    kind = f"autoscaling/{version} HorizontalPodAutoscaler"
    return live(kind, {"conditions": list(conditions)}, annotations=annotations)


AVAILABLE = condition("Available", reason="MinimumReplicasAvailable")
UNAVAILABLE = condition("Available", "False", "MinimumReplicasUnavailable", "No minimum.")
COMPLETE = condition("Progressing", reason="NewReplicaSetAvailable")
ROLLING = condition("Progressing", reason="ReplicaSetUpdated")
LATE = condition("Progressing", "False", "ProgressDeadlineExceeded", "has timed out.")
PAUSED = condition("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused")
QUOTA = condition("ReplicaFailure", reason="FailedCreate", message="exceeded quota")
REVISIONS = {"currentRevision": "db-1", "updateRevision": "db-2"}
ON_DELETE = {"type": "OnDelete"}
UNREADY = condition("Ready", "False", "ContainersNotReady", "unready: [app]")
UNSCHEDULABLE = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available")
STARTED = "2026-01-01T00:00:00Z"
BALANCED = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
BALANCER = {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}
ACCEPTED = condition("NamesAccepted", reason="NoConflicts")
TAKEN = condition("NamesAccepted", "False", "PluralConflict", "taken")
ESTABLISHED = condition("Established", reason="InitialNamesAccepted")
INSTALLING = condition("Established", "False", "Installing")
REFUSED = condition("Established", "False", "NotAccepted")
ABLE = condition("AbleToScale", reason="ReadyForNewScale")
ACTIVE = condition("ScalingActive", reason="ValidMetricFound")
DISABLED = condition("ScalingActive", "False", "ScalingDisabled")
NO_METRICS = condition("ScalingActive", "False", "FailedGetResourceMetric")
NO_SELECTOR = condition("ScalingActive", "False", "InvalidSelector")
ANNOTATION = "autoscaling.alpha.kubernetes.io/conditions"
WRITTEN = msgspec.json.encode([ABLE, ACTIVE]).decode()
READY = condition("Ready")
HALF = condition("Ready", "False", "Progressing", "2 of 3 done")
STALLED = condition("Stalled", reason="Invalid", message="no")

DO_WELL: dict[str, Object] = {
    "Deployment": deployment(replicas(3, AVAILABLE, COMPLETE)),
    "Deployment of one by default": live(DEPLOYMENT, replicas(1, AVAILABLE)),
    "endless Deployment": deployment(replicas(3, AVAILABLE), progressDeadlineSeconds=2**31 - 1),
    "Deployment of zero": deployment(seen(), replicas=0),
    "StatefulSet": stateful(replicas(3), rolling(0)),
    "StatefulSet without a strategy": stateful(replicas(3)),
    "partitioned StatefulSet": stateful(replicas(3, updatedReplicas=1, **REVISIONS), rolling(2)),
    "unmoved StatefulSet": stateful(replicas(3, updatedReplicas=0, **REVISIONS), rolling(5)),
    "StatefulSet by hand": stateful(replicas(3, updatedReplicas=0, **REVISIONS), ON_DELETE),
    "ReplicaSet": live(REPLICA_SET, replicas(1, condition("ReplicaFailure", "False"))),
    "ReplicationController": live(REPLICATION, replicas(1)),
    "DaemonSet": daemons(),
    "DaemonSet without nodes": live(DAEMON_SET, seen(desiredNumberScheduled=0)),
    "ready Pod": pod("Running", READY),
    "Pod at its end": pod("Succeeded", UNREADY),
    "complete Job": job(condition("Complete"), startTime=STARTED, succeeded=1),
    "CronJob": live("batch/v1 CronJob"),
    "Service": live("v1 Service", {"loadBalancer": {}}, {"type": "ClusterIP"}),
    "Service without a type": live("v1 Service"),
    "balanced Service": live("v1 Service", BALANCED, BALANCER),
    "Service that nobody balances": live("v1 Service", {}, BALANCER),
    "Ingress without an address": live(INGRESS, {"loadBalancer": {}}),
    "Ingress": live(INGRESS, BALANCED),
    "APIService": told(API, condition("Available")),
    "budget": live(BUDGET, seen(condition("DisruptionAllowed", "False"), currentHealthy=0)),
    "claim": phased("PersistentVolumeClaim", "Bound"),
    "free volume": phased("PersistentVolume", "Available"),
    "released volume": phased("PersistentVolume", "Released"),
    "Namespace": phased("Namespace", "Active"),
    "definition": told(DEFINITION, ESTABLISHED, ACCEPTED),
    "autoscaler": autoscaler(ABLE, ACTIVE),
    "autoscaler of nothing": autoscaler(ABLE, DISABLED),
    "autoscaler of v1": autoscaler(version="v1", **{ANNOTATION: WRITTEN}),
    "custom object without a status": live(CUSTOM),
    "custom object without conditions": live(CUSTOM, {"phase": "Whatever"}),
    "custom object with other conditions": live(CUSTOM, seen(condition("Synced", "False"))),
    "ready custom object": live(CUSTOM, seen(READY, condition("Stalled", "False"))),
    "generation as a text": live(CUSTOM, seen(READY, observedGeneration="2")),
    "somebody else's Deployment": live("example.org/v1 Deployment"),
}

NOT_SEEN = "its controller has not looked at it yet"
OUTDATED = "its controller has not looked at generation 2 yet, the last one was 1"
NO_IP = "it has no cluster IP yet"
LACKS = "condition ReplicaFailure is True: FailedCreate: exceeded quota"

ARE_ON_THEIR_WAY: Said = [
    (deployment(replicas(3, AVAILABLE, COMPLETE, observedGeneration=1)), OUTDATED),
    (deployment(replicas(1), replicas=0), "1 replicas are there instead of 0"),
    (live("extensions/v1beta1 Deployment", replicas(0)), "0 of 1 replicas exist"),
    (deployment(replicas(3, AVAILABLE, updatedReplicas=1)), "1 of 3 replicas are updated"),
    (
        deployment(replicas(3, UNAVAILABLE, ROLLING, availableReplicas=1)),
        "1 of 3 replicas are available; "
        "condition Available is False: MinimumReplicasUnavailable: No minimum.",
    ),
    (deployment(replicas(2, AVAILABLE, QUOTA)), f"2 of 3 replicas exist; {LACKS}"),
    (
        deployment(replicas(3, AVAILABLE, ROLLING)),
        "condition Progressing is True: ReplicaSetUpdated",
    ),
    (deployment(replicas(3, COMPLETE)), "condition Available is not known yet"),
    (
        deployment(replicas(3, AVAILABLE, PAUSED), paused=True),
        "condition Progressing is Unknown: DeploymentPaused: Deployment is paused",
    ),
    (
        deployment(replicas(3, AVAILABLE, PAUSED, updatedReplicas=0), paused=True),
        "0 of 3 replicas are updated; it is paused",
    ),
    (stateful(replicas(2)), "2 of 3 replicas exist"),
    (stateful(replicas(4)), "4 replicas are there instead of 3"),
    (stateful(replicas(3, readyReplicas=2), rolling(0)), "2 of 3 replicas are ready"),
    (stateful(replicas(3, readyReplicas=1), ON_DELETE), "1 of 3 replicas are ready"),
    (stateful(replicas(3, updatedReplicas=1), rolling(1)), "1 of 2 replicas are updated"),
    (stateful(replicas(3, **REVISIONS)), "the newest revision is not the current one yet"),
    (stateful(replicas(3, currentReplicas=1)), "1 of 3 replicas are of the current revision"),
    (live(REPLICA_SET, replicas(1, availableReplicas=0)), "0 of 1 replicas are available"),
    (live(REPLICA_SET, replicas(1, QUOTA)), LACKS),
    (live(REPLICATION, replicas(1, fullyLabeledReplicas=0)), "0 of 1 replicas are labelled"),
    (live(DAEMON_SET, seen()), NOT_SEEN),
    (daemons(currentNumberScheduled=1), "1 of 4 pods are scheduled"),
    (daemons(updatedNumberScheduled=2), "2 of 4 pods are updated"),
    (daemons(numberAvailable=3), "3 of 4 pods are available"),
    (daemons(numberReady=0), "0 of 4 pods are ready"),
    (pod("Running", UNREADY), "condition Ready is False: ContainersNotReady: unready: [app]"),
    (pod("Pending", app="ImagePullBackOff"), "container app waits: ImagePullBackOff"),
    (
        pod("Pending", UNSCHEDULABLE),
        "condition PodScheduled is False: Unschedulable: 0/3 nodes are available",
    ),
    (pod("Pending"), "its phase is Pending"),
    (pod("Unknown"), "its phase is Unknown"),
    (job(), "it has not started yet"),
    (live("v1 Service", BALANCED, {"type": "LoadBalancer"}), NO_IP),
    (told(API, condition("Available", "False", "Gone")), "condition Available is False: Gone"),
    (phased("PersistentVolumeClaim", "Pending"), "its phase is Pending"),
    (told(DEFINITION, ESTABLISHED), "condition NamesAccepted is not known yet"),
    (told(DEFINITION, ACCEPTED, INSTALLING), "condition Established is False: Installing"),
    (
        autoscaler(ABLE, NO_METRICS),
        "condition ScalingActive is False: FailedGetResourceMetric",
    ),
    (
        autoscaler(version="v1", **{ANNOTATION: "["}),
        "condition AbleToScale is not known yet",
    ),
    (live(CUSTOM, seen(READY, observedGeneration=1)), OUTDATED),
    (live(CUSTOM, seen(READY, observedGeneration="1")), OUTDATED),
    (
        live(CUSTOM, {"observedGeneration": -1}),
        "its controller has not looked at generation 2 yet",
    ),
    (live(CUSTOM, {"observedGeneration": -1}, generation=None), NOT_SEEN),
    (live(CUSTOM, seen(HALF)), "condition Ready is False: Progressing: 2 of 3 done"),
    (live(CUSTOM, seen(condition("Ready", "Unknown"))), "condition Ready is Unknown"),
    (
        live(CUSTOM, seen(READY, condition("Reconciling", reason="Retry"))),
        "condition Reconciling is True: Retry",
    ),
]

HAVE_FAILED: Said = [
    (
        deployment(replicas(3, AVAILABLE, LATE, updatedReplicas=1)),
        "condition Progressing is False: ProgressDeadlineExceeded: has timed out.",
    ),
    (
        phased("Pod", "Failed", reason="Evicted", message="low on memory"),
        "its phase is Failed: Evicted: low on memory",
    ),
    (
        pod("Running", UNREADY, app="CrashLoopBackOff", probe="CrashLoopBackOff"),
        "containers crash again and again: app, probe",
    ),
    (
        job(condition("Failed", reason="BackoffLimitExceeded"), startTime=STARTED, failed=4),
        "condition Failed is True: BackoffLimitExceeded",
    ),
    (phased("PersistentVolumeClaim", "Lost"), "its phase is Lost"),
    (
        phased("PersistentVolume", "Failed", message="not reclaimed"),
        "its phase is Failed: not reclaimed",
    ),
    (
        told(DEFINITION, TAKEN, REFUSED),
        "condition NamesAccepted is False: PluralConflict: taken",
    ),
    (told(DEFINITION, ACCEPTED, REFUSED), "condition Established is False: NotAccepted"),
    (autoscaler(ABLE, NO_SELECTOR), "condition ScalingActive is False: InvalidSelector"),
    (live(CUSTOM, seen(HALF, STALLED)), "condition Stalled is True: Invalid: no"),
]

FILLED_BY_A_CONTROLLER = (
    *(API, BUDGET, DAEMON_SET, DEFINITION, DEPLOYMENT, REPLICA_SET, STATEFUL_SET),
    *("autoscaling/v2 HorizontalPodAutoscaler", "batch/v1 Job", "v1 Namespace"),
    *("v1 PersistentVolume", "v1 PersistentVolumeClaim", "v1 Pod", REPLICATION),
)
ONLY_THERE = (
    *("v1 ConfigMap", "v1 Secret", "v1 ServiceAccount", "v1 LimitRange", "v1 ResourceQuota"),
    *("networking.k8s.io/v1 NetworkPolicy", "rbac.authorization.k8s.io/v1 ClusterRoleBinding"),
    *("storage.k8s.io/v1 StorageClass", "scheduling.k8s.io/v1 PriorityClass"),
)
MISFITS: Said = [
    (live(DEPLOYMENT, seen(replicas="3")), "status.replicas is not a number"),
    (live(DEPLOYMENT, seen(replicas=True)), "status.replicas is not a number"),
    (live(DEPLOYMENT, seen(), {"replicas": -1}), "spec.replicas is no number of things"),
    (live(DEPLOYMENT, seen(), {"replicas": 10**5000}), "spec.replicas is no number of things"),
    (live(DEPLOYMENT, seen(), ["replicas"]), "spec is not an object"),
    (live(CUSTOM, "Ready"), "status is not an object"),
    (live(CUSTOM, {"conditions": {"Ready": "True"}}), "status.conditions is not a list"),
    (live(CUSTOM, {"conditions": ["Ready"]}), "status.conditions[] is not an object"),
    (told(CUSTOM, {"type": "Ready", "status": True}), "status.conditions[].status is not a text"),
    (live(CUSTOM, {"observedGeneration": "x"}), "status.observedGeneration is not a number"),
    (live(CUSTOM, {"observedGeneration": 2**64}), "status.observedGeneration is no generation"),
    (live(CUSTOM, deletionTimestamp=1), "metadata.deletionTimestamp is not a text"),
    ({"metadata": {"name": "it"}}, "it does not say of which kind it is"),
    ({"apiVersion": 1, "kind": "Pod"}, "apiVersion is not a text"),
]


@pytest.mark.parametrize("object_", DO_WELL.values(), ids=DO_WELL)
def test_an_object_does_well_when_its_controller_is_done(object_: Object) -> None:
    assert health(object_) == CURRENT


@pytest.mark.parametrize(("object_", "message"), ARE_ON_THEIR_WAY)
def test_an_object_on_its_way_says_what_it_lacks(object_: Object, message: str) -> None:
    assert health(object_) == Health("InProgress", message)


@pytest.mark.parametrize(("object_", "message"), HAVE_FAILED)
def test_an_object_that_waiting_does_not_help_says_why(object_: Object, message: str) -> None:
    assert health(object_) == Health("Failed", message)


@pytest.mark.parametrize(("object_", "message"), MISFITS)
def test_an_object_of_a_senseless_shape_is_waited_for(object_: Object, message: str) -> None:
    assert health(object_) == Health("InProgress", message)


@pytest.mark.parametrize("kind", FILLED_BY_A_CONTROLLER)
@pytest.mark.parametrize("status", [None, {}])
def test_an_object_fresh_from_an_apply_is_not_current(kind: str, status: Object | None) -> None:
    for spec in (None, {"replicas": 0}, {"updateStrategy": {"type": "OnDelete"}}):
        found = health(live(kind, status, spec, generation=1))
        assert found.state == "InProgress"
        assert found.message


@pytest.mark.parametrize("kind", ONLY_THERE)
def test_what_only_has_to_be_there_is_current_whatever_it_holds(kind: str) -> None:
    assert health(live(kind, status=["odd"], spec="odd")) == CURRENT


@pytest.mark.parametrize("object_", DO_WELL.values(), ids=DO_WELL)
def test_what_is_being_deleted_is_terminating_however_it_does(object_: Object) -> None:
    metadata = {**object_["metadata"], "deletionTimestamp": STARTED, "finalizers": ["a/b", "c/d"]}
    message = "it is being deleted; finalizers: a/b, c/d"
    assert health({**object_, "metadata": metadata}) == Health("Terminating", message)


def test_a_job_that_runs_or_is_suspended_is_current_and_says_so() -> None:
    running = job(condition("Complete", "False"), startTime=STARTED, active=2, failed=1)
    assert health(running) == Health("Current", "pods: 2 active, 0 succeeded, 1 failed")
    suspended = job(condition("Suspended", reason="JobSuspended"))
    assert health(suspended) == Health("Current", "condition Suspended is True: JobSuspended")


def test_a_namespace_in_its_last_phase_is_terminating() -> None:
    found = health(phased("Namespace", "Terminating"))
    assert found == Health("Terminating", "its phase is Terminating")


def test_a_long_message_of_many_lines_becomes_a_short_one_of_one_line() -> None:
    found = health(live(CUSTOM, seen(condition("Ready", "False", "No", "a\nb\x1b[31m" * 99))))
    assert found.message.startswith(r"condition Ready is False: No: a\nb\x1b[31ma\nb")
    assert len(found.message) == 256
    assert found.message.endswith("…")


def test_nothing_of_spec_or_data_is_repeated_but_numbers_and_names() -> None:
    secret = {"password": "hunter2", "type": "hunter2", "replicas": "hunter2"}
    for kind in (*FILLED_BY_A_CONTROLLER, *ONLY_THERE, CUSTOM, "v1 Service"):
        assert "hunter2" not in health({**live(kind, seen(), secret), "data": secret}).message
