"""Rule 2: nothing is taken over by accident; what is asked for explicitly is."""

from functools import partial

from graphs import Graphs, Start, config_map, node
from waiting import until

LABEL = "pequod.io/graph"


async def test_rule_2_an_object_of_somebody_else_is_refused_and_its_managers_are_named(
    graphs: Graphs, engine: Start
) -> None:
    """Case 54, with conflicts ignored as well: force does not mean that everything is ours."""
    theirs = graphs.make("configmaps", config_map("web", theirs="1"))
    policy = {"conflictPolicy": "Force"}
    graphs.create("web", node("web", config_map("web"), applyPolicy=policy))
    async with engine() as running:
        await until(lambda: graphs.reason("web", "Applied") == "AlreadyExists")
        message = graphs.message("web", "Applied")
        assert f"ConfigMap/{graphs.namespace}/web exists already" in message
        assert "somebody" in message
        assert "Adopt" in message
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
        assert not [one for one in running.journal.writes() if one.method == "DELETE"]
    assert graphs.live("configmaps", "web")["data"] == theirs["data"]


async def test_rule_2_an_object_of_another_graph_is_refused(graphs: Graphs, engine: Start) -> None:
    first = graphs.create("first", node("web", config_map("web", a="first")))
    async with engine():
        await until(partial(graphs.is_ready, "first"))
        graphs.create("second", node("web", config_map("web", a="second")))
        await until(lambda: graphs.reason("second", "Applied") == "AlreadyExists")
        message = graphs.message("second", "Applied")
        assert f"another graph ({LABEL}={first})" in message
        assert "remove it from that graph first, or give the object another name" in message
        assert "Adopt" not in message, "what a living graph keeps cannot be adopted"
        graphs.delete("second")
        await until(lambda: not graphs.exists("second"))
        assert graphs.live("configmaps", "web")["data"] == {"a": "first"}


async def test_rule_2_what_a_graph_that_is_gone_left_is_refused_and_can_be_adopted(
    graphs: Graphs, engine: Start
) -> None:
    left = config_map("web", metadata={"labels": {LABEL: "of-a-graph-that-is-gone"}})
    graphs.make("configmaps", left)
    graphs.create("web", node("web", config_map("web")))
    async with engine():
        await until(lambda: graphs.reason("web", "Applied") == "AlreadyExists")
        message = graphs.message("web", "Applied")
        assert message.endswith("remove it, or set applyPolicy.mode to Adopt")


async def test_rule_2_our_label_on_an_object_that_is_no_node_gives_no_right_to_it(
    graphs: Graphs, engine: Start
) -> None:
    """Case 46: another controller copies our labels to objects of its own."""
    uid = graphs.create("web", node("web", config_map("web")))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        graphs.make("configmaps", config_map("copy", metadata={"labels": {LABEL: uid}}))
        await graphs.settled(running)
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
    assert graphs.find("configmaps", "web") is None
    assert graphs.live("configmaps", "copy")


async def test_rule_2_an_object_that_was_replaced_is_met_as_at_the_first_time(
    graphs: Graphs, engine: Start
) -> None:
    """Case 15: deleted and made again by somebody else under the same name, without our label."""
    graphs.create("web", node("web", config_map("web", a="1")))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
    graphs.remove("configmaps", "web")
    theirs = graphs.make("configmaps", config_map("web", a="theirs"))["metadata"]["uid"]
    async with engine() as running:
        await until(lambda: graphs.phase("web", "web") == "Error")
        assert "exists already" in graphs.message("web", "Applied")
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
        assert not [one for one in running.journal.writes() if one.method == "DELETE"]
    assert graphs.uid("configmaps", "web") == theirs
    assert graphs.live("configmaps", "web")["data"] == {"a": "theirs"}


async def test_rule_2_mode_adopt_takes_an_object_over_and_remembers_from_whom(
    graphs: Graphs, engine: Start
) -> None:
    made = graphs.make("configmaps", config_map("web", a="1", theirs="2"))["metadata"]["uid"]
    adopt = {"mode": "Adopt"}
    graphs.create("web", node("web", config_map("web", a="1"), applyPolicy=adopt))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        assert graphs.uid("configmaps", "web") == made
        status = graphs.status("web")["nodeStatus"]["web"]
        assert status["previousManagers"] == ["somebody"]
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
    assert graphs.find("configmaps", "web") is None


async def test_rule_2_adopting_leaves_what_others_say_about_who_manages_an_object(
    graphs: Graphs, engine: Start
) -> None:
    managed = {"labels": {"app.kubernetes.io/managed-by": "Helm"}}
    graphs.make("configmaps", config_map("web", metadata=managed, a="1"))
    adopt = {"mode": "Adopt"}
    graphs.create("web", node("web", config_map("web", a="1"), applyPolicy=adopt))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
    labels = graphs.live("configmaps", "web")["metadata"]["labels"]
    assert labels["app.kubernetes.io/managed-by"] == "Helm"


async def test_rule_2_adopting_does_not_take_fields_unless_by_force(
    graphs: Graphs, engine: Start
) -> None:
    graphs.make("configmaps", config_map("web", a="theirs"))
    adopt = {"mode": "Adopt"}
    graphs.create("web", node("web", config_map("web", a="ours"), applyPolicy=adopt))
    async with engine():
        await until(lambda: graphs.reason("web", "Applied") == "FieldConflict")
        message = graphs.message("web", "Applied")
        assert "somebody manages .data.a" in message
        assert graphs.live("configmaps", "web")["data"] == {"a": "theirs"}
        force = adopt | {"conflictPolicy": "Force"}
        graphs.change("web", node("web", config_map("web", a="ours"), applyPolicy=force))
        await until(partial(graphs.is_ready, "web"))
    assert graphs.live("configmaps", "web")["data"] == {"a": "ours"}


async def test_rule_2_what_an_earlier_pass_made_and_could_not_note_is_ours(
    graphs: Graphs, engine: Start
) -> None:
    """Case 3: the inventory holds the intent, the object our label, and nobody its UID."""
    uid = graphs.create("web", node("web", config_map("web")))
    labels = {"labels": {LABEL: uid}}
    made = graphs.make("configmaps", config_map("web", metadata=labels))["metadata"]["uid"]
    async with engine():
        await until(partial(graphs.is_ready, "web"))
    assert graphs.uid("configmaps", "web") == made
    assert graphs.inventory("web") == {"ConfigMap/web": made}


async def test_mode_create_makes_an_object_once_and_leaves_it_alone(
    graphs: Graphs, engine: Start
) -> None:
    once = {"mode": "Create"}
    graphs.create("web", node("web", config_map("web", a="1"), applyPolicy=once))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        graphs.edit("configmaps", "web", {"data": {"a": "edited"}})
        graphs.change("web", node("web", config_map("web", a="2"), applyPolicy=once))
        await until(partial(graphs.is_ready, "web"))
        await graphs.settled(running)
        assert graphs.live("configmaps", "web")["data"] == {"a": "edited"}
        graphs.remove("configmaps", "web")
        await graphs.settled(running)
        assert graphs.find("configmaps", "web") is None
        assert graphs.is_ready("web")
        assert len(running.journal.writes()) == 1


async def test_mode_create_leaves_an_object_alone_when_only_the_id_of_its_node_changes(
    graphs: Graphs, engine: Start
) -> None:
    once = {"mode": "Create", "conflictPolicy": "Force"}
    graphs.create("web", node("one", config_map("web", a="1"), applyPolicy=once))
    async with engine():
        await until(partial(graphs.is_ready, "web"))
        graphs.edit("configmaps", "web", {"data": {"a": "rotated"}})
        graphs.change("web", node("two", config_map("web", a="1"), applyPolicy=once))
        await until(partial(graphs.is_ready, "web"))
    assert graphs.live("configmaps", "web")["data"] == {"a": "rotated"}


async def test_mode_observe_never_writes_and_waits_for_others(
    graphs: Graphs, engine: Start
) -> None:
    theirs = node("theirs", config_map("theirs"), applyPolicy={"mode": "Observe"})
    graphs.create("web", theirs, node("ours", config_map("ours"), dependsOn=["theirs"]))
    async with engine() as running:
        await until(lambda: "theirs waits for somebody to create it" in graphs.message("web"))
        assert graphs.phase("web", "ours") == "Pending"
        assert graphs.find("configmaps", "ours") is None
        assert not running.journal.writes()
    made = graphs.make("configmaps", config_map("theirs", data="x"))
    async with engine() as running:
        await until(partial(graphs.is_ready, "web"))
        assert {one.place.rpartition("/")[2] for one in running.journal.writes()} == {"ours"}
        reads = running.journal.of("configmaps/theirs")
        assert {one.user.rpartition(":")[2] for one in reads} == {"tenant"}
        graphs.delete("web")
        await until(lambda: not graphs.exists("web"))
    assert graphs.live("configmaps", "theirs")["data"] == made["data"]
