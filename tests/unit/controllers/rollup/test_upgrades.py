"""In which order a chain that runs becomes another one, stage by stage."""

import functools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

import chains
from pequod.api.graph import Graph, GraphMetadata, Node
from pequod.api.rollup import OPChainSpec
from pequod.controllers.frontend.compiling import compiled
from pequod.controllers.rollup.compiling import Parts, nodes_of, parts_in, parts_of
from pequod.controllers.rollup.components.chain import COMPONENTS, Chain, Component
from pequod.controllers.rollup.components.senders import SENDERS
from pequod.controllers.rollup.configuration import configuration
from pequod.controllers.rollup.upgrading import (
    Situation,
    Stage,
    is_stopped,
    next_stage,
)
from pequod.graph.digests import Digests
from pequod.graph.model import checked

OLD, NEW, NEWER = "example/old:1", "example/new:2", "example/newer:3"
STOP, GETH, NODE = (
    "the batcher and the proposer stop",
    "op-geth serves the new way",
    "op-node makes blocks the new way",
)


def chain(
    asked: Mapping[Any, Mapping[str, Any]] | None = None,
    *,
    without: tuple[Component, ...] = (),
    **more: Mapping[str, Any],
) -> Parts:
    """A chain as its graph has it: what is asked for of programs, by their names."""
    components: dict[str, Any] = {one: {"image": OLD} for one in COMPONENTS}
    for one, changes in [*(asked or {}).items(), *more.items()]:
        components[one] |= changes
    for one in without:
        components[one]["enabled"] = False
    return compiled_parts(chains.spec(components=components))


def compiled_parts(wanted: OPChainSpec) -> Parts:
    keys = {f"{one}_key": None for one in SENDERS if not getattr(wanted.components, one).enabled}
    made = Chain("chain", "rollups", wanted, configuration(wanted, chains.material(**keys)))
    graph = compiled(
        Graph(nodes=nodes_of(parts_of(made))),
        name="opchain-chain",
        digests=Digests(b"k" * 32),
        origin=GraphMetadata(),
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return parts_in(graph.nodes)


@functools.cache
def old() -> Parts:
    return chain()


def image(name: str) -> dict[str, str]:
    return {"image": name}


def situation(*ready: Component, answers: bool = True, advances: bool = True) -> Situation:
    """Which workloads are as the graph has them, and what the chain does."""
    return Situation(is_ready=lambda one: one in ready, answers=answers, advances=advances)


WELL = situation(*COMPONENTS)
DEAD = situation(answers=False, advances=False)


def workload(parts: Parts, component: Component) -> Node:
    (found,) = [node for node in parts[component] if node.id == component]
    return found


def runs(parts: Parts, component: Component) -> str:
    """The image of a program."""
    found: str = workload(parts, component).object["spec"]["template"]["spec"]["containers"][0][
        "image"
    ]
    return found


def stopped(parts: Parts) -> list[bool]:
    return [is_stopped(parts, one) for one in SENDERS]


def images(parts: Parts) -> list[str]:
    return [runs(parts, one) for one in COMPONENTS]


def stages(wanted: Parts, stored: Parts, now: Situation = WELL, most: int = 10) -> list[Stage]:
    """Every stage on the way to what is wanted, in a world that stays as it is."""
    found: list[Stage] = []
    for _ in range(most):
        stage = next_stage(wanted, stored, now)
        if stage.parts == stored:
            break
        found.append(stage)
        stored = stage.parts
    return found


def test_a_chain_that_is_as_it_should_be_is_left_alone() -> None:
    for now in (WELL, DEAD):
        stage = next_stage(old(), chain(), now)
        assert (stage.parts, stage.step, stage.waits) == (old(), "whole", "")


@pytest.mark.parametrize(
    "wanted",
    [
        chain(batcher=image(NEW)),
        chain(proposer=image(NEW)),
        chain(batcher=image(NEW), proposer={"metricsEnabled": True}),
        chain(geth={"storage": {"size": "1Ti"}}),
        chain(without=("proposer",)),
        chain(without=("batcher", "proposer")),
        chain(without=("node",)),
        chain(without=("geth",)),
    ],
)
def test_what_leaves_op_geth_and_op_node_as_they_are_is_no_upgrade(wanted: Parts) -> None:
    for now in (WELL, DEAD):
        assert next_stage(wanted, old(), now) == Stage(wanted)
        assert next_stage(old(), wanted, now) == Stage(old())


@pytest.mark.parametrize(
    "asked",
    [
        {"geth": image(NEW)},
        {"node": image(NEW)},
        {"geth": image(NEW), "node": image(NEW)},
        {one: image(NEW) for one in COMPONENTS},
        {"geth": {"resources": {"limits": {"memory": "1Gi"}}}},
        {"node": {"extraArgs": ["--log.level=debug"]}},
    ],
)
def test_first_the_programs_that_send_stop(asked: dict[str, dict[str, Any]]) -> None:
    for now in (WELL, DEAD):
        stage = next_stage(chain(asked), old(), now)
        assert (stage.step, stage.waits) == ("stop", STOP)
        assert stopped(stage.parts) == [True, True]
        assert images(stage.parts) == [OLD] * 4


def test_a_program_that_stops_waits_for_nobody() -> None:
    stage = next_stage(chain(geth=image(NEW)), old(), DEAD)
    for sender in SENDERS:
        assert workload(stage.parts, sender).depends_on == (
            f"{sender}-secret",
            f"{sender}-service",
        )


def test_nothing_but_the_number_of_pods_changes_when_a_program_stops() -> None:
    stage = next_stage(chain(batcher=image(NEW), geth=image(NEW)), old(), WELL)
    for sender in SENDERS:
        before, after = workload(old(), sender).object, workload(stage.parts, sender).object
        assert after == before | {"spec": before["spec"] | {"replicas": 0}}
        assert [n for n in stage.parts[sender] if n.id != sender] == [
            n for n in old()[sender] if n.id != sender
        ]


@pytest.mark.parametrize("gone", [(), ("batcher",), ("proposer",)])
def test_nothing_changes_before_both_have_stopped(gone: tuple[Component, ...]) -> None:
    wanted = chain(geth=image(NEW), node=image(NEW))
    stored = next_stage(wanted, old(), WELL).parts
    stage = next_stage(wanted, stored, situation("geth", "node", *gone))
    assert stage == Stage(stored, "stop", STOP)


def test_then_op_geth_changes() -> None:
    wanted = chain(geth=image(NEW), node=image(NEW), batcher=image(NEW))
    stage = stages(wanted, old())[1]
    assert (stage.step, stage.waits) == ("geth", GETH)
    assert images(stage.parts) == [NEW, OLD, OLD, OLD]
    assert stopped(stage.parts) == [True, True]


@pytest.mark.parametrize(
    "now",
    [
        situation(*SENDERS, "node"),
        situation(*SENDERS, "node", "geth", answers=False),
        situation(*SENDERS, "node", answers=True, advances=True),
    ],
)
def test_op_node_waits_until_op_geth_serves(now: Situation) -> None:
    wanted = chain(geth=image(NEW), node=image(NEW))
    stored = stages(wanted, old())[1].parts
    assert next_stage(wanted, stored, now) == Stage(stored, "geth", GETH)


def test_then_op_node_changes() -> None:
    wanted = chain(geth=image(NEW), node=image(NEW), batcher=image(NEW))
    stored = stages(wanted, old())[1].parts
    now = situation(*SENDERS, "geth", answers=True, advances=False)
    stage = next_stage(wanted, stored, now)
    assert (stage.step, stage.waits) == ("node", NODE)
    assert images(stage.parts) == [NEW, NEW, OLD, OLD]
    assert stopped(stage.parts) == [True, True]


@pytest.mark.parametrize(
    ("now", "waits"),
    [
        (situation(*SENDERS, "geth"), NODE),
        (situation(*SENDERS, "geth", "node", advances=False), NODE),
        (situation(*SENDERS, "node"), GETH),
        (situation(*SENDERS, "geth", "node", answers=False), GETH),
    ],
)
def test_nobody_sends_before_the_chain_makes_blocks_again(now: Situation, waits: str) -> None:
    wanted = chain(geth=image(NEW), node=image(NEW))
    stored = stages(wanted, old())[2].parts
    stage = next_stage(wanted, stored, now)
    assert (stage.parts, stage.waits) == (stored, waits)


def test_at_last_everything_is_as_it_should_be() -> None:
    wanted = chain(geth=image(NEW), node=image(NEW), batcher=image(NEW), proposer=image(NEW))
    found = stages(wanted, old())
    assert [stage.step for stage in found] == ["stop", "geth", "node", "whole"]
    assert found[-1] == Stage(wanted)


@pytest.mark.parametrize(
    ("asked", "steps"),
    [
        ({"geth": image(NEW)}, ["stop", "geth", "whole"]),
        ({"node": image(NEW)}, ["stop", "node", "whole"]),
    ],
)
def test_what_does_not_change_has_no_stage(
    asked: dict[str, dict[str, str]], steps: list[str]
) -> None:
    assert [stage.step for stage in stages(chain(asked), old())] == steps


def test_a_chain_without_programs_that_send_needs_nobody_to_stop() -> None:
    stored = chain(without=SENDERS)
    wanted = chain(without=SENDERS, geth=image(NEW), node=image(NEW))
    assert [stage.step for stage in stages(wanted, stored)] == ["geth", "node"]


def test_a_new_key_is_used_when_its_program_starts_again() -> None:
    changes = {"l1": {"contractAddresses": {"batcher": chains.STRANGER}}}
    asked = chains.spec(components={"geth": image(NEW)}, **changes)
    held = chains.material(batcher_key=chains.STRANGER_KEY.encode())
    made = Chain("chain", "rollups", asked, configuration(asked, held))
    wanted = parts_of(made)
    found = stages(wanted, old())
    assert [stage.parts["batcher"] == wanted["batcher"] for stage in found] == [
        *([False] * (len(found) - 1)),
        True,
    ]


def test_another_operator_goes_on_where_the_last_one_ended() -> None:
    """It has seen nothing of the chain yet."""
    wanted = chain(geth=image(NEW), node=image(NEW))
    fresh = situation(*COMPONENTS, answers=False, advances=False)
    reached = [stage.parts for stage in stages(wanted, old())]
    assert images(next_stage(wanted, reached[0], fresh).parts)[0] == NEW
    assert next_stage(wanted, reached[1], fresh).parts == reached[1]
    assert next_stage(wanted, reached[2], fresh).parts == reached[2]


@pytest.mark.parametrize("reached", [0, 1, 2])
def test_an_upgrade_can_be_taken_back(reached: int) -> None:
    wanted = chain(geth=image(NEW), node=image(NEW))
    stored = stages(wanted, old())[reached].parts
    assert stages(old(), stored)[-1] == Stage(old())


@pytest.mark.parametrize("component", ["geth", "node"])
@pytest.mark.parametrize("next_one", [OLD, NEWER])
def test_a_version_that_never_serves_can_be_left(component: Component, next_one: str) -> None:
    broken = chain({component: image(NEW)})
    stored = next(stage for stage in stages(broken, old()) if stage.step == component).parts
    now = situation(*(one for one in COMPONENTS if one != component), answers=component == "node")
    found = stages(chain({component: image(next_one)}), stored, now)
    assert runs(found[-1].parts, component) == next_one
    assert stopped(found[-1].parts) == [True, True]


def stuck() -> tuple[Parts, Situation]:
    """A chain whose new op-geth never serves, and what is known of it."""
    found = stages(chain(geth=image(NEW)), old())
    return found[1].parts, situation(*SENDERS, "node", answers=False, advances=False)


def test_a_volume_that_is_too_small_for_a_new_version_can_grow() -> None:
    stored, now = stuck()
    wanted = chain(geth=image(NEW) | {"storage": {"size": "1Ti"}})
    (*_, last) = [stored, *(stage.parts for stage in stages(wanted, stored, now))]
    assert last["geth"] == wanted["geth"]


@pytest.mark.parametrize("component", ["geth", "node"])
def test_a_program_that_never_serves_can_be_disabled(component: Component) -> None:
    broken = chain({component: image(NEW)})
    stored = next(stage for stage in stages(broken, old()) if stage.step == component).parts
    now = situation(*(one for one in COMPONENTS if one != component), answers=False, advances=False)
    wanted = chain(without=(component,))
    (*_, last) = [stored, *(stage.parts for stage in stages(wanted, stored, now))]
    assert component not in last


@pytest.mark.parametrize("senders", [(), SENDERS])
def test_a_program_that_comes_with_an_upgrade_is_there_before_others_depend_on_it(
    senders: tuple[Component, ...],
) -> None:
    """op-geth is enabled, and op-node changed, by the same edit."""
    stored = chain(without=("geth", *senders))
    wanted = chain(without=senders, node=image(NEW))
    for stage in stages(wanted, stored):
        checked(nodes_of(stage.parts))


@pytest.mark.parametrize("asked", [{one: image(NEW)} for one in COMPONENTS])
def test_every_stage_can_be_executed(asked: dict[str, dict[str, str]]) -> None:
    for stage in stages(chain(asked), old()):
        plan = checked(nodes_of(stage.parts))
        assert {*plan.order} == {node.id for node in nodes_of(old())}


def test_who_is_not_there_is_not_stopped() -> None:
    assert not is_stopped(chain(without=("batcher",)), "batcher")
    assert not is_stopped(old(), "batcher")
