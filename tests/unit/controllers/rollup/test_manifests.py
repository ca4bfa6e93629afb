"""What a chain is compiled to: as the golden files have it, and what holds for every chain."""

import base64
import functools
import gzip
import hashlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

import chains
from chains import Document, changed, genesis, l1_chain, material, rollup, spec
from pequod.api.graph import Graph, GraphMetadata, Node
from pequod.controllers.frontend.compiling import Compiled, compiled
from pequod.controllers.rollup.compiling import nodes_of, parts_of
from pequod.controllers.rollup.components.chain import COMPONENTS, Chain
from pequod.controllers.rollup.configuration import LARGEST_PLAIN, configuration
from pequod.graph.digests import Digests
from pequod.graph.model import MAX_SPEC_BYTES, WARN_FROM, checked

Object = dict[str, Any]
GOLDEN = Path(__file__).parents[3] / "golden" / "rollup"
REFRESH = "PEQUOD_GOLDEN=write .venv/bin/pytest tests/unit/controllers/rollup/test_manifests.py"
WRITES = os.environ.get("PEQUOD_GOLDEN") == "write"
WORKLOADS = frozenset({"StatefulSet", "Deployment"})
NAME = "chain"
NAMESPACE = "rollups"
SEPOLIA = 11_155_111
HIDDEN_URL = "https://user:pass-word@l1.example/v3/0123456789abcdef?token=t0p-s3cret"
HIDDEN = {"rpcUrl": None, "rpcUrlSecretRef": {"name": "chain-l1", "key": "url"}}
BEACON = "http://beacon.example:5052"
ORACLE = "0xdfe97868233d1aa22e815a266982f2cf17685a27"
SECRETS = (
    *(chains.BATCHER_KEY, chains.PROPOSER_KEY, chains.STRANGER_KEY, chains.JWT),
    *("pass-word", "0123456789abcdef", "t0p-s3cret"),
)
"""What must be in Secrets only."""


def chain(
    asked: Mapping[str, Any] | None = None, name: str = NAME, **held: chains.Content
) -> Chain:
    """A chain with changes: a merge patch of its spec, and other content of its Secrets."""
    wanted = spec(**(asked or {}))
    for sender in ("batcher", "proposer"):
        if not getattr(wanted.components, sender).enabled:
            held[f"{sender}_key"] = None
    if wanted.l1.rpc_url_secret_ref is not None:
        held.setdefault("l1_url", HIDDEN_URL.encode())
    return Chain(name, NAMESPACE, wanted, configuration(wanted, material(**held)))


def without(*components: str) -> Object:
    return {"components": {one: {"enabled": False} for one in components}}


def on_sepolia() -> Chain:
    """A chain on an L1 that op-node knows: nothing is set that need not be."""
    l1 = {"chainId": SEPOLIA, "chainConfigSecret": None}
    return chain({"l1": l1}, rollup=changed(rollup(), ".l1_chain_id", SEPOLIA), l1_chain=None)


def padded() -> Document:
    """A genesis that is too large to be kept as it is."""
    account = {"balance": "0x0", "code": f"0x{'60' * 600}"}
    many = {f"42{number:038x}": account for number in range(LARGEST_PLAIN // 1000)}
    return changed(genesis(), ".alloc", genesis()["alloc"] | many)


LIMITS = {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"memory": "16Gi"}}
TUNED = {
    "components": {
        "geth": {
            "image": "registry.example/op-geth@sha256:" + "a" * 64,
            "extraArgs": ["--cache=4096", "--txpool.globalslots=10000"],
            "resources": LIMITS,
            "storage": {"size": "2Ti", "storageClass": "fast"},
        },
        "node": {"extraArgs": ["--sequencer.l1-confs=0"], "resources": {"limits": {"cpu": "1"}}},
        "batcher": {"extraArgs": ["--max-channel-duration=2"]},
        "proposer": {"extraArgs": ["--game-type=0"], "resources": LIMITS},
    }
}
METRICS = {"components": {one: {"metricsEnabled": True} for one in COMPONENTS}}
ORACLE_ONLY = {"l1": {"contractAddresses": {"disputeGameFactory": None, "l2OutputOracle": ORACLE}}}

COMBINATIONS: dict[str, Callable[[], Chain]] = {
    "defaults": on_sepolia,
    "metrics": lambda: chain(METRICS),
    "tuned": lambda: chain(TUNED),
    "hidden-l1": lambda: chain({"l1": HIDDEN}),
    "beacon": lambda: chain({"l1": {"beaconUrl": BEACON}}),
    "l1-chain-config": chain,
    "packed-genesis": lambda: chain(genesis=padded()),
    "no-geth": lambda: chain(without("geth")),
    "no-node": lambda: chain(without("node")),
    "no-proposer": lambda: chain(without("proposer")),
    "batcher-only": lambda: chain(without("geth", "node", "proposer")),
    "output-oracle": lambda: chain(ORACLE_ONLY),
    "orphan": lambda: chain({"deletionPolicy": "Orphan"}),
    "rotated-batcher": lambda: chain(
        {"l1": {"contractAddresses": {"batcher": chains.STRANGER}}},
        batcher_key=chains.STRANGER_KEY.encode(),
    ),
}


@functools.cache
def every() -> dict[str, Chain]:
    """Every chain that a property is looked at in: the golden ones, and all mixtures of choices."""
    found = {name: make() for name, make in COMBINATIONS.items()}
    counts = range(1, len(COMPONENTS) + 1)
    running = [names for n in counts for names in itertools.combinations(COMPONENTS, n)]
    for names, hidden, rich in itertools.product(running, (False, True), (False, True)):
        programs = {one: {"enabled": one in names, "metricsEnabled": rich} for one in COMPONENTS}
        asked: Object = {
            "components": programs,
            "l1": (HIDDEN if hidden else {}) | ({"beaconUrl": BEACON} if rich else {}),
        }
        held: Object = {"genesis": padded()} if rich else {}
        found[f"{'+'.join(names)} hidden={hidden} rich={rich}"] = chain(asked, **held)
    return found


@functools.cache
def objects(name: str) -> dict[str, Object]:
    """The objects of a chain by the ids of their nodes."""
    return {node.id: node.object for node in nodes_of(parts_of(every()[name]))}


def workloads(found: Mapping[str, Object]) -> dict[str, Object]:
    return {id_: one for id_, one in found.items() if one["kind"] in WORKLOADS}


def pod_of(workload: Object) -> Object:
    return {**workload["spec"]["template"]["spec"]}


def containers(pod: Object) -> list[Object]:
    return [*pod.get("initContainers", ()), *pod["containers"]]


def every_workload() -> Iterator[tuple[str, Object]]:
    for name in every():
        for id_, workload in workloads(objects(name)).items():
            yield f"{id_} of {name}", workload


def every_container() -> Iterator[tuple[str, Object]]:
    for place, workload in every_workload():
        for one in containers(pod_of(workload)):
            yield f"{one['name']} of {place}", one


def flags(container: Object) -> dict[str, str]:
    """Arguments by name; one that is given twice has its last value."""
    pairs = (one.removeprefix("--").partition("=") for one in container["args"])
    return {name: value for name, _, value in pairs}


def program(found: Mapping[str, Object], id_: str) -> Object:
    """The container that runs for as long as its pod."""
    return containers({"containers": pod_of(found[id_])["containers"]})[0]


def stored(made: Chain) -> Compiled:
    """A chain as its graph has it."""
    return compiled(
        Graph(nodes=nodes_of(parts_of(made))),
        name="opchain-chain",
        digests=Digests(b"k" * 32),
        origin=GraphMetadata(),
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )


def shown(nodes: tuple[Node, ...]) -> str:
    """Nodes as the golden files have them; what gzip makes of a file is not for people."""
    plain = msgspec.to_builtins(nodes)
    for node in plain:
        binary = node["object"].get("binaryData", {})
        for key, value in binary.items():
            content = gzip.decompress(base64.b64decode(value))
            binary[key] = f"gzip of {len(content)} bytes, {hashlib.sha256(content).hexdigest()}"
    return yaml.safe_dump(plain, sort_keys=False, width=4096)


@pytest.mark.parametrize("name", COMBINATIONS)
def test_a_chain_is_compiled_as_its_golden_file_has_it(name: str) -> None:
    file, found = GOLDEN / f"{name}.yaml", shown(nodes_of(parts_of(every()[name])))
    if WRITES:
        file.write_text(found)
    known = file.read_text() if file.exists() else ""
    assert found == known, f"if that is meant: {REFRESH}"


def test_every_golden_file_is_of_a_chain() -> None:
    unknown = [file for file in GOLDEN.iterdir() if file.stem not in COMBINATIONS]
    for file in unknown if WRITES else ():
        file.unlink()
    assert WRITES or not unknown


def test_the_same_chain_is_always_compiled_to_the_same_nodes() -> None:
    for name, make in COMBINATIONS.items():
        assert stored(make()).nodes == stored(every()[name]).nodes, name


def test_every_graph_can_be_executed() -> None:
    """Ids are unique, dependencies exist, no object is there twice, and no Secret is readable."""
    for name, made in every().items():
        plan = checked(stored(made).nodes)
        assert plan.warnings == (), name


def test_programs_start_after_what_they_need() -> None:
    plan = checked(stored(every()["defaults"]).nodes)
    assert plan.levels["geth"] < plan.levels["node"] < plan.levels["batcher"]
    assert plan.levels["node"] < plan.levels["proposer"]
    for component in ("geth", "batcher", "proposer"):
        assert {f"{component}-secret", f"{component}-service"} <= {*plan.edges[component]}


def test_a_secret_value_is_nowhere_but_in_secrets() -> None:
    forms = [*SECRETS, *(base64.b64encode(one.encode()).decode() for one in SECRETS)]
    for name in every():
        for id_, object_ in objects(name).items():
            if object_["kind"] != "Secret":
                text = msgspec.json.encode(object_).decode()
                assert not [one for one in forms if one in text], f"{id_} of {name}"
        kept = msgspec.json.encode(stored(every()[name]).nodes).decode()
        assert not [one for one in forms if one in kept], name


def test_what_a_pod_refers_to_is_in_the_graph() -> None:
    for name in every():
        found = objects(name)
        held = {
            (one["kind"], one["metadata"]["name"]): one.get("data", {}) | one.get("binaryData", {})
            for one in found.values()
        }
        for id_, workload in workloads(found).items():
            for kind, named, keys in references(pod_of(workload)):
                assert keys <= {*held[kind, named]}, f"{kind} {named} of {id_} of {name}"


def references(pod: Object) -> Iterator[tuple[str, str, set[str]]]:
    """Objects that a pod refers to, and the keys that it takes from them."""
    for volume in pod["volumes"]:
        if claim := volume.get("persistentVolumeClaim"):
            yield "PersistentVolumeClaim", claim["claimName"], set()
        if files := volume.get("configMap"):
            yield "ConfigMap", files["name"], {one["key"] for one in files.get("items", ())}
        if hidden := volume.get("secret"):
            yield "Secret", hidden["secretName"], {one["key"] for one in hidden.get("items", ())}
    for one in containers(pod):
        for variable in one["env"]:
            if source := variable.get("valueFrom"):
                key = source["secretKeyRef"]
                yield "Secret", key["name"], {key["key"]}


def test_no_program_has_rights_that_it_does_not_need() -> None:
    for place, workload in every_workload():
        pod = pod_of(workload)
        context = pod["securityContext"]
        assert context["runAsNonRoot"] is True, place
        assert context["runAsUser"] > 0, place
        assert context["runAsGroup"] > 0, place
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, place
        assert not {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"} & {*pod}, place
        assert pod["automountServiceAccountToken"] is False, place
        assert pod["enableServiceLinks"] is False, place
    for place, one in every_container():
        assert one["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }, place


@pytest.mark.parametrize("api", ["http.api", "ws.api"])
def test_the_engine_api_is_not_for_everybody(api: str) -> None:
    for name in every():
        if "geth" in objects(name):
            geth = flags(program(objects(name), "geth"))
            assert "engine" not in geth[api].split(","), name
            assert geth["authrpc.jwtsecret"] == "/secrets/jwt", name
            assert "*" not in geth["authrpc.vhosts"] + geth["http.vhosts"], name
            assert not {"http.corsdomain", "ws.origins"} & {*geth}, name


@pytest.mark.parametrize("api", ["http.api", "ws.api"])
def test_what_everybody_may_call_cannot_change_the_chain(api: str) -> None:
    """`debug_setHead` takes blocks back, `admin_…` and `miner_…` change how they are made."""
    geth = flags(program(objects("defaults"), "geth"))
    assert not {"debug", "admin", "miner", "personal"} & {*geth[api].split(",")}


def test_op_node_has_its_rollup_from_a_file_and_nobody_an_admin_api() -> None:
    for place, one in every_container():
        assert "rpc.enable-admin" not in flags(one), place
    for name in every():
        if "node" in objects(name):
            node = program(objects(name), "node")
            assert "rollup.config" in flags(node), name
            assert "network" not in flags(node), name
            assert "OP_NODE_NETWORK" not in {one["name"] for one in node["env"]}, name


def test_programs_are_told_of_each_other_where_services_serve() -> None:
    """The batcher reads from both: blocks from op-geth, where they stand from op-node."""
    for name in every():
        if "batcher" in objects(name):
            batcher = flags(program(objects(name), "batcher"))
            assert batcher["l2-eth-rpc"] == "http://chain-geth:8545", name
            assert batcher["rollup-rpc"] == "http://chain-node:8547", name
    found = objects("defaults")
    served = {
        f"http://{one['metadata']['name']}:{port['port']}"
        for one in found.values()
        if one["kind"] == "Service"
        for port in one["spec"]["ports"]
    }
    told = {
        value
        for id_ in workloads(found)
        for value in flags(program(found, id_)).values()
        if value.startswith("http://chain-")
    }
    assert told == {"http://chain-geth:8545", "http://chain-geth:8551", "http://chain-node:8547"}
    assert told <= served


def test_there_is_at_most_one_of_each_program() -> None:
    """Two that write to one volume, or send from one account, get into each other's way."""
    for place, workload in every_workload():
        assert workload["spec"]["replicas"] == 1, place
        if workload["kind"] == "Deployment":
            assert workload["spec"]["strategy"] == {"type": "Recreate"}, place
    for id_ in ("geth", "batcher", "proposer"):
        assert objects("defaults")[id_]["kind"] == "StatefulSet"


def test_a_pod_that_never_gets_ready_is_replaced_when_its_template_changes() -> None:
    """A StatefulSet with the default policy waits for such a pod forever (kubernetes#67250)."""
    for place, workload in every_workload():
        if workload["kind"] == "StatefulSet":
            assert workload["spec"].get("podManagementPolicy") == "Parallel", place


def test_the_first_block_is_written_before_geth_starts() -> None:
    for name in every():
        if "geth" in objects(name):
            *_, last = pod_of(objects(name)["geth"])["initContainers"]
            assert last["command"] == ["geth"], name
            assert last["args"][0] == "init", name
            assert last["args"][-1] == "/config/genesis.json", name
            assert flags(last)["datadir"] == flags(program(objects(name), "geth"))["datadir"]
            assert "genesis.json" not in " ".join(program(objects(name), "geth")["args"]), name


def test_every_program_is_looked_after_by_probes() -> None:
    for place, workload in every_workload():
        (one,) = pod_of(workload)["containers"]
        ports = {port["name"] for port in one["ports"]}
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert one[probe]["httpGet"]["port"] in ports, place


def test_services_and_workloads_find_their_pods() -> None:
    for name in every():
        found = objects(name)
        for id_, workload in workloads(found).items():
            made = workload["spec"]["template"]["metadata"]["labels"].items()
            assert workload["spec"]["selector"]["matchLabels"].items() <= made, f"{id_} of {name}"
            serving = found[f"{id_}-service"]["spec"]
            assert serving["selector"].items() <= made, f"{id_} of {name}"
            ports = {one["name"]: one["containerPort"] for one in program(found, id_)["ports"]}
            for port in serving["ports"]:
                assert ports[port["targetPort"]] == port["port"], f"{id_} of {name}"


def test_everything_has_the_labels_that_are_promised() -> None:
    for name in every():
        for id_, object_ in objects(name).items():
            component = id_.partition("-")[0]
            assert object_["metadata"]["labels"] == {
                "app.kubernetes.io/name": f"op-{component}",
                "app.kubernetes.io/instance": NAME,
                "app.kubernetes.io/component": component,
                "app.kubernetes.io/part-of": "opstack",
            }, f"{id_} of {name}"


def test_ports_are_those_that_are_promised() -> None:
    found = {id_: program(objects("metrics"), id_)["ports"] for id_ in COMPONENTS}
    assert {id_: {port["containerPort"] for port in ports} for id_, ports in found.items()} == {
        "geth": {8545, 8546, 8551, 30303, 6060},
        "node": {8547, 9003, 7300},
        "batcher": {8548, 7300},
        "proposer": {8560, 7300},
    }


def test_the_longest_name_of_a_chain_still_makes_names() -> None:
    for node in nodes_of(parts_of(chain(name="c" * 40))):
        assert len(node.object["metadata"]["name"]) <= 63 - len("-0123456789"), node.id


def test_the_volume_is_kept_when_that_is_asked_for() -> None:
    for node in nodes_of(parts_of(every()["orphan"])):
        wanted = "Orphan" if node.id == "geth-data" else None
        assert node.apply_policy.deletion_policy == wanted, node.id


BASE: dict[str, Any] = {"l1": HIDDEN}
CHANGES: dict[str, tuple[Callable[[], Chain], str]] = {
    "nothing": (lambda: chain(BASE), ""),
    "genesis": (lambda: chain(BASE, genesis=changed(genesis(), ".config.x", 1)), "geth"),
    "rollup": (lambda: chain(BASE, rollup=changed(rollup(), ".x", 1)), "node"),
    "jwt": (lambda: chain(BASE, jwt=chains.STRANGER_KEY.encode()), "geth node"),
    "l1 chain": (lambda: chain(BASE, l1_chain=changed(l1_chain(), ".x", 1)), "node"),
    "hidden url": (lambda: chain(BASE, l1_url=b"https://other"), "node batcher proposer"),
    "url": (chain, "node batcher proposer"),
    "proposer key": (lambda: chain(BASE, proposer_key=chains.STRANGER_KEY.encode()), "proposer"),
    "batcher key": (
        lambda: chain(
            {"l1": HIDDEN | {"contractAddresses": {"batcher": chains.STRANGER}}},
            batcher_key=chains.STRANGER_KEY.encode(),
        ),
        "batcher",
    ),
    "spelling of a jwt": (lambda: chain(BASE, jwt=f"0x{chains.JWT.upper()}\n".encode()), ""),
    "beacon": (lambda: chain({"l1": HIDDEN | {"beaconUrl": BEACON}}), "node batcher"),
    "oracle": (lambda: chain({"l1": HIDDEN | ORACLE_ONLY["l1"]}), "proposer"),
    "volume": (lambda: chain(BASE | {"components": {"geth": {"storage": {"size": "1Ti"}}}}), ""),
    "deletion policy": (lambda: chain(BASE | {"deletionPolicy": "Orphan"}), ""),
    "windows": (lambda: chain(BASE | {"health": {"stallWindow": "1h", "fundsHours": 1}}), ""),
    "name of the network": (lambda: chain(BASE | {"l2": {"networkName": "x"}}), ""),
    "no proposer": (lambda: chain(BASE | without("proposer")), "proposer"),
} | {
    f"{what} of {one}": (
        functools.partial(chain, BASE | {"components": {one: {what: value}}}),
        one,
    )
    for one in COMPONENTS
    for what, value in (
        ("image", "other:1"),
        ("extraArgs", ["--log.level=debug"]),
        ("metricsEnabled", True),
        ("resources", {"limits": {"memory": "1Gi"}}),
    )
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_starts_exactly_the_pods_anew_that_it_concerns(change: str) -> None:
    make, wanted = CHANGES[change]
    before, after = templates(chain(BASE)), templates(make())
    assert [one for one in COMPONENTS if before.get(one) != after.get(one)] == wanted.split()


def templates(made: Chain) -> dict[str, Object]:
    found = {node.id: node.object for node in nodes_of(parts_of(made))}
    return {id_: one["spec"]["template"] for id_, one in workloads(found).items()}


def test_a_genesis_of_op_deployer_fits_into_a_graph() -> None:
    """It has 2,048 proxies with the same code, each with an implementation of its own."""
    code = "0x" + "".join(hashlib.sha512(bytes([i])).hexdigest() for i in range(36))
    slot = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc"
    predeploys = {
        f"42{number:038x}": {
            "balance": "0x0",
            "nonce": "0x0",
            "code": code,
            "storage": {slot: f"0x{'0' * 24}c0d3c0d3c0d3c0d3c0d3c0d3c0d3c0d3{number:08x}"},
        }
        for number in range(2048)
    }
    content = chains.encoded(changed(genesis(), ".alloc", genesis()["alloc"] | predeploys))
    assert len(content) > 9 * 2**20
    graph = stored(chain(genesis=content))
    assert checked(graph.nodes).size < WARN_FROM * MAX_SPEC_BYTES
    (files,) = [node.object for node in graph.nodes if node.id == "geth-config"]
    (held,) = files["binaryData"].values()
    assert gzip.decompress(base64.b64decode(held)) == content
