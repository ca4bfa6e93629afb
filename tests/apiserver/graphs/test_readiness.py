"""When a node is ready, what its dependents wait for, and what is said when it is not."""

from functools import partial

from evaluators import evaluating
from graphs import Graphs, Start, config_map, deployment, node, object_
from waiting import until


def job(name: str, *, suspend: bool) -> dict[str, object]:
    spec = {
        "suspend": suspend,
        "backoffLimit": 0,
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a:1"}]}
        },
    }
    return object_("batch/v1", "Job", name, spec=spec)


async def test_dependents_wait_until_their_dependency_is_current(
    graphs: Graphs, engine: Start
) -> None:
    """The simulated node makes pods ready; until then the dependent is not applied."""
    graphs.create(
        "web",
        node("app", deployment("app", replicas=1)),
        node("after", config_map("after"), dependsOn=["app"]),
    )
    async with engine():
        await until(partial(graphs.is_ready, "web"))
    app = graphs.live("apps/v1/deployments", "app")
    assert app["status"]["availableReplicas"] == 1
    assert graphs.find("configmaps", "after") is not None


async def test_a_condition_that_is_asked_for_must_match(graphs: Graphs, engine: Start) -> None:
    wait = [{"type": "ConditionMatch", "conditionType": "Available", "timeout": "1m"}]
    impossible = [{"type": "ConditionMatch", "conditionType": "Never", "timeout": "1s"}]
    graphs.create(
        "web",
        node("app", deployment("app", replicas=1), readyWhen=wait),
        node("never", config_map("never"), readyWhen=impossible),
        node("child", config_map("child"), dependsOn=["never"]),
    )
    async with engine():
        await until(lambda: graphs.phase("web", "app") == "Ready")
        await until(lambda: graphs.phase("web", "never") == "Error")
        status = graphs.status("web")["nodeStatus"]["never"]
        assert "not ready within 1 s" in status["lastError"]
        assert "no condition Never" in status["lastError"]
        assert graphs.find("configmaps", "child") is None
        graphs.change(
            "web",
            node("app", deployment("app", replicas=1), readyWhen=wait),
            node("never", config_map("never"), readyWhen=[{"type": "Exists"}]),
            node("child", config_map("child"), dependsOn=["never"]),
        )
        await until(partial(graphs.is_ready, "web"))


async def test_a_deadline_of_a_predicate_counts_from_the_apply_also_across_restarts(
    graphs: Graphs, engine: Start
) -> None:
    wait = [{"type": "ConditionMatch", "conditionType": "Never", "timeout": "3s"}]
    graphs.create("web", node("a", config_map("a"), readyWhen=wait))
    async with engine():
        await until(lambda: graphs.phase("web", "a") == "Applied")
    since = graphs.status("web")["nodeStatus"]["a"]["lastTransitionTime"]
    async with engine():
        await until(lambda: graphs.phase("web", "a") == "Error")
    assert graphs.status("web")["nodeStatus"]["a"]["lastTransitionTime"] >= since


async def test_deployment_available_and_job_complete(graphs: Graphs, engine: Start) -> None:
    app = node("app", deployment("app", replicas=1), readyWhen=[{"type": "DeploymentAvailable"}])
    complete = [{"type": "JobComplete"}]
    graphs.create("web", app, node("job", job("job", suspend=True), readyWhen=complete))
    async with engine():
        await until(lambda: graphs.phase("web", "app") == "Ready")
        await until(lambda: graphs.phase("web", "job") == "Applied")
        graphs.change("web", app, node("job", job("job", suspend=False), readyWhen=complete))
        await until(partial(graphs.is_ready, "web"))
    assert graphs.live("batch/v1/jobs", "job")["status"]["succeeded"] == 1


async def test_cel_is_evaluated_over_the_live_object_as_the_tenant_sees_it(
    graphs: Graphs, engine: Start
) -> None:
    wait = [{"type": "CEL", "expression": "self.data.go == 'on'"}]
    graphs.create(
        "web",
        node("a", config_map("a"), readyWhen=wait),
        node("b", config_map("b"), dependsOn=["a"]),
    )
    async with evaluating() as cel, engine(cel=cel) as running:
        await until(lambda: "no such key" in graphs.message("web", "Applied"))
        graphs.edit("configmaps", "a", {"data": {"go": "off"}})
        await until(lambda: "is false" in graphs.message("web", "Applied"))
        graphs.edit("configmaps", "a", {"data": {"go": "on"}})
        await until(partial(graphs.is_ready, "web"))
        reads = [one for one in running.journal.of("configmaps/a") if one.method == "GET"]
        assert reads
        assert all(one.user.endswith(":tenant") for one in reads)


async def test_what_is_no_expression_is_not_waited_for(graphs: Graphs, engine: Start) -> None:
    wrong = [{"type": "CEL", "expression": "self.data.a ==== '1'"}]
    unknown = [{"type": "CEL", "expression": "foo.bar == 1"}]
    graphs.create(
        "web",
        node("a", config_map("a"), readyWhen=wrong),
        node("b", config_map("b"), readyWhen=unknown),
    )
    async with evaluating() as cel, engine(cel=cel):
        await until(lambda: graphs.reason("web", "Healthy") == "NotHealthy")
        await until(lambda: {graphs.phase("web", id_) for id_ in "ab"} == {"Error"})
        message = graphs.message("web", "Healthy")
    assert "is no CEL expression" in message
    assert "mend it in readyWhen" in message
    assert "\n" not in message


async def test_a_graph_in_a_circle_is_refused_before_anything_is_written(
    graphs: Graphs, engine: Start
) -> None:
    """Case 59."""
    graphs.create(
        "web",
        node("a", config_map("a"), dependsOn=["b"]),
        node("b", config_map("b"), dependsOn=["c"]),
        node("c", config_map("c"), dependsOn=["a"]),
    )
    async with engine() as running:
        await until(lambda: graphs.reason("web") == "InvalidGraph")
        message = graphs.message("web")
        assert "circle" in message
        assert (
            "a → b → c → a" in message or "b → c → a → b" in message or "c → a → b → c" in message
        )
        assert graphs.condition("web", "Stalled")["status"] == "True"
        assert not running.journal.writes()
