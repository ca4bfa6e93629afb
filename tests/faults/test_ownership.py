"""Whose an object is when things go wrong: cases 46 to 54, with an operator that dies in between.

Case 47, an object that moves from one graph to another, is tested in both orders: asked for before
it is let go, and let go before it is asked for. In the second order both specs have to be stored
before the operator acts on the first, else the object is deleted, as it must be: then nobody asks
for it. In both, the operator is killed before and after each write of the handover, and each of
these writes fails.
"""

import asyncio
import random
from collections.abc import Iterator
from functools import partial

import pytest

from customkinds import CRDS, custom_kind, definition
from faultactions import Gate, answer
from faultproxy import Rule, calls
from faults import oracles
from faults.runs import QUIET
from faults.stage import Stage, in_thread, writes_of
from faults.sweep import EXHAUSTIVE, FAULTS, KILLS, QUICK, SEED
from faults.views import nudged
from graphs import TENANT, Graphs, Object, config_map, node, object_
from pequod.base.tasks import end
from pequod.graph.model import GRAPH_LABEL

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(900)]

NAME = "shop"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def maps(*names: str) -> list[Object]:
    return [node(name, config_map(name)) for name in names]


async def made(stage: Stage, *nodes: Object, name: str = NAME) -> Graphs:
    """A namespace with a graph that is ready."""
    graphs = await stage.namespace()
    await in_thread(partial(graphs.create, name, *nodes))
    await ready(stage, graphs, name)
    return graphs


async def ready(stage: Stage, graphs: Graphs, name: str = NAME) -> None:
    try:
        await stage.until(partial(graphs.is_ready, name), f"{name} is ready")
    except AssertionError as error:
        status = await in_thread(partial(graphs.status, name))
        journal = oracles.shown(stage.writes(graphs.namespace))
        raise AssertionError(f"{error}\nIts status: {status}\nWritten:\n{journal}") from None


async def change(graphs: Graphs, *nodes: Object, name: str = NAME) -> None:
    await in_thread(partial(graphs.change, name, *nodes))


async def until_reason(
    stage: Stage, graphs: Graphs, reason: str, name: str = NAME, kind: str = "Ready"
) -> str:
    """Wait until a graph gives a reason; returns what it says."""
    await stage.until(lambda: graphs.reason(name, kind) == reason, f"{name} says {reason}")
    return await in_thread(partial(graphs.message, name, kind))


async def names(graphs: Graphs) -> set[str]:
    """The ConfigMaps that are there."""
    found = (await in_thread(partial(graphs.api.get, graphs.path("configmaps")))).body["items"]
    return {one["metadata"]["name"] for one in found} - {"kube-root-ca.crt"}


async def uid(graphs: Graphs, name: str) -> str:
    return await in_thread(partial(graphs.uid, "configmaps", name))


def deletes(stage: Stage, graphs: Graphs) -> list[str]:
    """What the operator has deleted, or tried to."""
    calls_ = stage.writes(graphs.namespace)
    return [call.path.rpartition("/")[2] for call in calls_ if call.method == "DELETE"]


async def quiet(stage: Stage, graphs: Graphs) -> None:
    """Nothing is written any more."""
    before = len(stage.writes(graphs.namespace))
    await asyncio.sleep(QUIET)
    after = stage.writes(graphs.namespace)[before:]
    assert not after, oracles.shown(after)


async def test_case_46_an_object_that_only_carries_our_labels_is_never_deleted(
    theatre: Stage,
) -> None:
    graphs = await made(theatre, *maps("one", "two", "three"))
    ours = await in_thread(partial(graphs.live, "configmaps", "one"))
    copied = config_map("theirs", {"labels": ours["metadata"]["labels"]})
    theirs = (await in_thread(partial(graphs.make, "configmaps", copied)))["metadata"]["uid"]
    await change(graphs, *maps("one", "two"))
    await ready(theatre, graphs)
    theatre.kill()
    await change(graphs, *maps("one"))
    await ready(theatre, graphs)
    assert await names(graphs) == {"one", "theirs"}
    await in_thread(partial(graphs.delete, NAME))
    await theatre.until(lambda: not graphs.exists(NAME), "the graph is gone")
    assert await names(graphs) == {"theirs"}
    assert await uid(graphs, "theirs") == theirs
    assert "theirs" not in deletes(theatre, graphs)


async def test_case_46_an_object_that_took_our_labels_and_the_name_of_ours_is_not_deleted(
    theatre: Stage,
) -> None:
    """A copy of what was there is another object: its UID stands in no inventory."""
    graphs = await made(theatre, *maps("one", "two"))
    ours = await in_thread(partial(graphs.live, "configmaps", "two"))
    copied = config_map("two", {"labels": ours["metadata"]["labels"]})
    async with theatre.without_operator():
        await in_thread(partial(graphs.remove, "configmaps", "two"))
        theirs = (await in_thread(partial(graphs.make, "configmaps", copied)))["metadata"]["uid"]
        await change(graphs, *maps("one"))
    await ready(theatre, graphs)
    assert await names(graphs) == {"one", "two"}
    assert await uid(graphs, "two") == theirs
    assert [*await in_thread(partial(graphs.inventory, NAME))] == ["ConfigMap/one"]


SHARED = "shared"


class Move:
    """An object on its way from the graph `giver` to the graph `taker`, and what fails there."""

    def __init__(self, stage: Stage, fault: str, write: int) -> None:
        self.stage = stage
        self.fault = fault
        self.write = write
        self.uid = ""
        self.rule: Rule
        self.graphs: Graphs

    async def begin(self) -> None:
        self.graphs = await made(self.stage, *maps("own", SHARED), name="giver")
        await in_thread(partial(self.graphs.create, "taker", *maps("stays")))
        await ready(self.stage, self.graphs, "taker")
        self.uid = await uid(self.graphs, SHARED)

    async def ask(self) -> None:
        await change(self.graphs, *maps("stays", SHARED), name="taker")

    async def let_go(self) -> None:
        await change(self.graphs, *maps("own"), name="giver")

    async def in_vain(self) -> None:
        """Wait until the taker has said that it cannot have the object yet."""
        await until_reason(self.stage, self.graphs, "AlreadyExists", "taker")

    def arm(self) -> None:
        action = FAULTS[self.fault].action(self.stage)
        place = writes_of(self.graphs.namespace)
        self.rule = self.stage.proxy.rule(place, action, first=self.write, times=1)

    @property
    def hit(self) -> bool:
        return self.rule.seen >= self.write

    async def end(self) -> None:
        await ready(self.stage, self.graphs, "giver")
        await ready(self.stage, self.graphs, "taker")
        self.rule.remove()
        found = await in_thread(partial(self.graphs.live, "configmaps", SHARED))
        giver = await in_thread(partial(self.graphs.inventory, "giver"))
        taker = await in_thread(partial(self.graphs.inventory, "taker"))
        graph = await in_thread(partial(self.graphs.get, "taker"))
        checks = {
            "it is the same object": found["metadata"]["uid"] == self.uid,
            "the giver no longer has it": f"ConfigMap/{SHARED}" not in giver,
            "the taker has it": taker.get(f"ConfigMap/{SHARED}") == self.uid,
            "it says so": found["metadata"]["labels"][GRAPH_LABEL] == graph["metadata"]["uid"],
            "nothing was deleted": not deletes(self.stage, self.graphs),
        }
        problems = [check for check, holds in checks.items() if not holds]
        journal = oracles.shown(self.stage.writes(self.graphs.namespace))
        where = f"{self.fault} at write {self.write}, PEQUOD_FAULTS_SEED={SEED}"
        assert not problems, f"{where}: not true that {problems}\nWritten:\n{journal}"
        await quiet(self.stage, self.graphs)


async def asked_for_first(_: Stage, moves: list[Move]) -> None:
    """Ask for it, then let it go, while the operator looks on."""
    await asyncio.gather(*(move.ask() for move in moves))
    await asyncio.gather(*(move.in_vain() for move in moves))
    for move in moves:
        move.arm()
    await asyncio.gather(*(move.let_go() for move in moves))


async def let_go_first(stage: Stage, moves: list[Move]) -> None:
    """Let it go and then ask for it, while there is no operator."""
    async with stage.without_operator():
        await asyncio.gather(*(move.let_go() for move in moves))
        await asyncio.gather(*(move.ask() for move in moves))
        for move in moves:
            move.arm()


ORDERS = {"asked-for-first": asked_for_first, "let-go-first": let_go_first}


def batches() -> Iterator[tuple[str, list[int]]]:
    """Faults, and the writes that they happen to at once; one operator dies once."""
    if not EXHAUSTIVE:
        chance = random.Random(SEED)
        yield chance.choice((*KILLS, "409")), [chance.randint(1, 4)]
        return
    for fault in (*KILLS, *QUICK):
        if fault in KILLS:
            yield from ((fault, [write]) for write in range(1, 11))
        else:
            yield fault, [*range(1, 11)]


@pytest.mark.parametrize("order", ORDERS)
async def test_case_47_an_object_that_moves_between_graphs_keeps_its_uid(
    theatre: Stage, order: str
) -> None:
    ended: set[str] = set()
    for fault, writes in batches():
        if fault in ended:
            continue
        moves = [Move(theatre, fault, write) for write in writes]
        await asyncio.gather(*(move.begin() for move in moves))
        await ORDERS[order](theatre, moves)
        await asyncio.gather(*(move.end() for move in moves))
        if not all(move.hit for move in moves):
            ended.add(fault)
    assert not EXHAUSTIVE or ended == {*KILLS, *QUICK}, "a move has more writes than were tried"


async def test_case_47_what_nobody_asks_for_when_it_is_let_go_is_deleted_and_made_anew(
    theatre: Stage,
) -> None:
    move = Move(theatre, "no fault", 0)
    await move.begin()
    await move.let_go()
    await ready(theatre, move.graphs, "giver")
    assert SHARED not in await names(move.graphs)
    await move.ask()
    await ready(theatre, move.graphs, "taker")
    assert await uid(move.graphs, SHARED) != move.uid


async def test_case_48_an_empty_graph_deletes_nothing_unless_that_is_allowed(
    theatre: Stage,
) -> None:
    graphs = await made(theatre, *maps("one", "two"))
    patch = partial(graphs.api.patch, f"{graphs._path}/{NAME}")
    refused = await in_thread(partial(patch, {"spec": {"nodes": []}}))
    assert refused.code == 422
    assert "allowEmpty" in refused.message
    theatre.kill()
    await theatre.ready()
    await quiet(theatre, graphs)
    assert await names(graphs) == {"one", "two"}
    allowed = await in_thread(partial(patch, {"spec": {"nodes": [], "allowEmpty": True}}))
    assert allowed.code == 200, allowed.message
    await ready(theatre, graphs)
    assert await names(graphs) == set()


async def test_case_49_a_change_that_deletes_much_waits_for_an_agreement_to_that_very_change(
    theatre: Stage,
) -> None:
    graphs = await made(theatre, *maps("one", "two", "three", "four", "five"))
    await change(graphs, *maps("one", "two"))
    first = await until_reason(theatre, graphs, "PruneBlocked", kind="Pruned")
    # The agreement comes too late: by then the change is another one.
    async with theatre.without_operator():
        await change(graphs, *maps("one"))
        await _agree(graphs, first)
    await theatre.until(
        lambda: (
            graphs.message(NAME, "Pruned") not in {first, ""}
            and graphs.reason(NAME, "Pruned") == "PruneBlocked"
        ),
        "the other change is blocked, too",
    )
    theatre.kill()
    await theatre.ready()
    await quiet(theatre, graphs)
    assert deletes(theatre, graphs) == []
    await _agree(graphs, await in_thread(partial(graphs.message, NAME, "Pruned")))
    await ready(theatre, graphs)
    assert await names(graphs) == {"one"}


async def _agree(graphs: Graphs, message: str) -> None:
    key, _, revision = message.rpartition("`")[0].split()[-1].partition("=")
    await in_thread(partial(graphs.patch, NAME, {"metadata": {"annotations": {key: revision}}}))


async def test_case_50_an_object_that_took_the_name_before_our_delete_arrived_survives(
    theatre: Stage,
) -> None:
    graphs = await made(theatre, *maps("one", "two"))
    gate = Gate()
    held = theatre.proxy.rule(
        calls("DELETE", f"{graphs.namespace}/configmaps/two"), gate.stall, times=1
    )
    await change(graphs, *maps("one"))
    await theatre.until(lambda: held.seen == 1, "our delete is on its way")
    await in_thread(partial(graphs.remove, "configmaps", "two"))
    theirs = await in_thread(partial(graphs.make, "configmaps", config_map("two", a="theirs")))
    gate.open()
    await ready(theatre, graphs)
    held.remove()
    await quiet(theatre, graphs)
    found = await in_thread(partial(graphs.live, "configmaps", "two"))
    assert found["metadata"]["uid"] == theirs["metadata"]["uid"]
    assert found["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]
    assert [*await in_thread(partial(graphs.inventory, NAME))] == ["ConfigMap/one"]


CIRCLE = [
    node("one", config_map("one"), dependsOn=["new"]),
    node("new", config_map("new"), dependsOn=["one"]),
]
UNKNOWN = [*maps("one"), node("new", object_("example.com/v1", "Unheard", "new"))]


@pytest.mark.parametrize("broken", [CIRCLE, UNKNOWN], ids=["circle", "unknown-kind"])
@pytest.mark.parametrize("haste", ["at-once", "seen", "seen-and-killed"])
async def test_case_51_what_a_broken_graph_in_between_no_longer_had_is_pruned_in_the_end(
    theatre: Stage, broken: list[Object], haste: str
) -> None:
    graphs = await made(theatre, *maps("one", "two"))
    await change(graphs, *broken)
    if haste != "at-once":
        await theatre.until(
            lambda: graphs.status(NAME)["observedGeneration"] == 2, "the broken graph was seen"
        )
    if haste == "seen-and-killed":
        theatre.kill()
    await change(graphs, *maps("one"))
    await ready(theatre, graphs)
    assert await names(graphs) == {"one"}
    assert [*await in_thread(partial(graphs.inventory, NAME))] == ["ConfigMap/one"]


async def test_case_52_a_foreign_finalizer_holds_its_object_and_nobody_else(
    theatre: Stage,
) -> None:
    graphs = await made(theatre, *maps("one", "two"))
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await in_thread(partial(graphs.edit, "configmaps", "two", held))
    await change(graphs, *maps("one", "three"))
    told = await until_reason(theatre, graphs, "Pruning", kind="Pruned")
    assert "example.com/hold" in told
    assert "ConfigMap/two" in await in_thread(partial(graphs.inventory, NAME))
    theatre.kill()
    await change(graphs, *maps("one", "three", "four"))
    await theatre.until(lambda: graphs.phase(NAME, "four") == "Ready", "others go on")
    assert await names(graphs) == {"one", "two", "three", "four"}
    await theatre.until(
        lambda: "ConfigMap/two" in graphs.inventory(NAME), "it stays in the inventory"
    )
    await quiet(theatre, graphs)
    await in_thread(partial(graphs.edit, "configmaps", "two", {"metadata": {"finalizers": None}}))
    await ready(theatre, graphs)
    assert await names(graphs) == {"one", "three", "four"}
    assert "ConfigMap/two" not in await in_thread(partial(graphs.inventory, NAME))


async def test_case_53_an_object_is_given_up_when_its_kind_is_gone_and_not_when_it_is_unknown(
    theatre: Stage,
) -> None:
    kind, api = custom_kind(), theatre.api
    assert (await in_thread(partial(api.create, CRDS, definition(kind)))).code == 201
    rules = [{"apiGroups": [kind.group], "resources": ["*"], "verbs": ["*"]}]
    graphs = await theatre.namespace()
    place = f"{RBAC}/namespaces/{graphs.namespace}"
    role = {"metadata": {"name": "widgets"}, "rules": rules}
    binding = {
        "metadata": {"name": "widgets"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "widgets"},
        "subjects": [{"kind": "ServiceAccount", "name": TENANT, "namespace": graphs.namespace}],
    }
    watching = {
        "metadata": {
            "name": f"watch-{kind.group}",
            "labels": {"rbac.pequod.io/aggregate-to-watch": "true"},
        },
        "rules": [{**rules[0], "verbs": ["get", "list", "watch"]}],
    }
    for path, body in (
        (f"{place}/roles", role),
        (f"{place}/rolebindings", binding),
        (f"{RBAC}/clusterroles", watching),
    ):
        assert (await in_thread(partial(api.create, path, body))).code == 201
    crd = f"{CRDS}/{kind.resource}"
    await theatre.until(
        lambda: api.get(f"/apis/{kind.group}/v1").code == 200, "the kind is discovered"
    )
    widget = node("widget", object_(kind.api_version, kind.kind, "one"))
    await in_thread(partial(graphs.create, NAME, *maps("one"), widget))
    nudging = asyncio.create_task(nudged(theatre, graphs.namespace, NAME, after=2.0))
    await ready(theatre, graphs)
    await end(nudging)
    entry = f"{kind.kind}/one"

    # The kind is there, but nothing is heard of it: that says nothing about its objects.
    theatre.kill()
    failing = theatre.proxy.rule(calls("GET", f"^/apis/{kind.group}"), answer(503))
    await change(graphs, *maps("one"))
    await theatre.until(lambda: failing.seen >= 2, "the kind was asked for")
    await asyncio.sleep(QUIET)
    assert entry in await in_thread(partial(graphs.inventory, NAME))
    assert not await in_thread(partial(graphs.is_ready, NAME))

    # The kind is gone for good.
    assert (await in_thread(partial(api.call, "DELETE", crd))).code == 200
    await theatre.until(lambda: api.get(crd).code == 404, "the CRD is gone")
    failing.remove()
    nudging = asyncio.create_task(nudged(theatre, graphs.namespace, NAME, after=1.0))
    await ready(theatre, graphs)
    await end(nudging)
    assert entry not in await in_thread(partial(graphs.inventory, NAME))


OWNERS = {
    "another-manager": {},
    "helm": {
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-name": "theirs"},
    },
    "another-graph": {"labels": {GRAPH_LABEL: "00000000-0000-0000-0000-000000000000"}},
}


@pytest.mark.parametrize("owner", OWNERS)
async def test_case_54_an_object_of_somebody_else_is_adopted_only_when_that_is_asked_for(
    theatre: Stage, owner: str
) -> None:
    graphs = await theatre.namespace()
    theirs = config_map("one", OWNERS[owner], a="theirs")
    before = (await in_thread(partial(graphs.make, "configmaps", theirs)))["metadata"]
    await in_thread(partial(graphs.create, NAME, *maps("one")))
    told = await until_reason(theatre, graphs, "AlreadyExists", kind="Applied")
    assert "somebody" in told
    theatre.kill()
    await theatre.ready()
    await asyncio.sleep(QUIET)
    found = (await in_thread(partial(graphs.live, "configmaps", "one")))["metadata"]
    assert found["resourceVersion"] == before["resourceVersion"]
    adopting = {"mode": "Adopt", "conflictPolicy": "Force"}
    await change(graphs, node("one", config_map("one"), applyPolicy=adopting))
    await ready(theatre, graphs)
    assert await uid(graphs, "one") == before["uid"]
    assert await in_thread(partial(graphs.inventory, NAME)) == {"ConfigMap/one": before["uid"]}


async def test_case_54_whoever_makes_an_object_while_our_create_is_on_its_way_keeps_it(
    theatre: Stage,
) -> None:
    graphs = await theatre.namespace()
    gate = Gate()
    held = theatre.proxy.rule(
        calls("PATCH", f"{graphs.namespace}/configmaps/one"), gate.stall, times=1
    )
    await in_thread(partial(graphs.create, NAME, *maps("one")))
    await theatre.until(lambda: held.seen == 1, "our create is on its way")
    theirs = await in_thread(partial(graphs.make, "configmaps", config_map("one", a="theirs")))
    gate.open()
    await until_reason(theatre, graphs, "AlreadyExists", kind="Applied")
    held.remove()
    found = await in_thread(partial(graphs.live, "configmaps", "one"))
    assert found["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]
    await in_thread(partial(graphs.delete, NAME))
    await theatre.until(lambda: not graphs.exists(NAME), "the graph is gone")
    assert await uid(graphs, "one") == theirs["metadata"]["uid"]
    assert deletes(theatre, graphs) == []
