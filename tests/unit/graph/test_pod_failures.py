"""Which pod keeps a workload from being ready, and what it says; never its own last words."""

import pytest

from pequod.graph.podfailures import described, selector

Pod = dict[str, object]


def pod(*containers: Pod, conditions: tuple[Pod, ...] = ()) -> Pod:
    status = {"containerStatuses": [*containers], "conditions": [*conditions]}
    return {"metadata": {"name": "shop-1"}, "status": status}


def container(**state: object) -> Pod:
    return {"name": "app", "ready": False, "state": state}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (
            pod(container(waiting={"reason": "ImagePullBackOff", "message": "no such image"})),
            "Pod/shop-1: container app waits: ImagePullBackOff: no such image",
        ),
        (
            pod(
                container(waiting={"reason": "CrashLoopBackOff"})
                | {"lastState": {"terminated": {"exitCode": 3}}}
            ),
            "Pod/shop-1: container app waits: CrashLoopBackOff (it ended before with code 3)",
        ),
        (
            pod(container(terminated={"exitCode": 2, "reason": "Error", "message": "canary"})),
            "Pod/shop-1: container app ended with code 2 (Error)",
        ),
        (
            pod(container(running={"startedAt": "now"})),
            "Pod/shop-1: container app runs and is not ready",
        ),
        (
            pod(
                conditions=(
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/1 nodes are available",
                    },
                )
            ),
            "Pod/shop-1: Unschedulable: 0/1 nodes are available",
        ),
        (pod(container(waiting={"reason": "ContainerCreating"})), ""),
        (pod(), ""),
        ({"metadata": {"name": "odd"}, "status": 5}, ""),
    ],
)
def test_the_first_complaint_of_a_pod_is_told(found: Pod, said: str) -> None:
    assert described([found]) == said


def test_pods_that_have_nothing_to_say_are_passed_over() -> None:
    broken = pod(container(waiting={"reason": "ErrImagePull"}))
    assert "ErrImagePull" in described([pod(), broken])
    assert described([]) == ""


def test_pods_are_found_by_the_labels_of_their_workload() -> None:
    assert selector({"spec": {"selector": {"matchLabels": {"b": "2", "a": "1"}}}}) == "a=1,b=2"
    assert selector({"spec": {"selector": {"matchExpressions": []}}}) == ""
    assert selector({"spec": 5}) == ""
