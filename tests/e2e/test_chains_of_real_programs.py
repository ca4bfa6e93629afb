"""A real OP Stack chain under the operator: it makes blocks, and goes on whatever happens to it."""

import asyncio
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import chains
from graphs import Graphs, Object, object_
from images import write_program_image
from instances import Foreground, eventually
from operators import Operator, operator_kubeconfig
from opstack import jsonrpc, wallet
from opstack.devnet import ChainFiles, chain_files, l1_arguments
from opstack.factory import deploy_factory, proposals
from opstack.programs import OpStackPrograms, opstack_programs
from pequod.dev.node.configuration import LOCAL_REGISTRY
from rollups import Chains
from volumes import CLAIMS, own_volume

NAMESPACE = "chains"
NAME = "devnet"
PATIENCE = 240.0
CTR = ("ctr", "--namespace=k8s.io", "images")
RECEIPTS = "--txmgr.receipt-query-interval=500ms"
USER = 1000
"""Whom the programs run as."""


@pytest.fixture(scope="module")
def programs() -> OpStackPrograms:
    """Everything that a chain consists of; `make chain` has built it."""
    return asyncio.run(opstack_programs(lambda _: None))


@pytest.fixture(scope="module")
def images(node: Foreground, programs: OpStackPrograms) -> dict[str, str]:
    """Images of the programs, by what they are called in an OPChain."""
    loaded = {
        "geth": load(node, programs.geth),
        "node": load(node, programs.op_node),
        "batcher": load(node, programs.op_batcher),
        "proposer": load(node, programs.op_proposer),
    }
    return loaded | {f"new {one}": renamed(node, loaded[one]) for one in ("geth", "node")}


def load(node: Foreground, program: Path) -> str:
    """Put an image on the node, where pods find it without a registry."""
    name, archive = f"{LOCAL_REGISTRY}/{program.name}:1", f"{program.name}.tar"
    write_program_image(node.root / "node" / archive, name, program)
    node.execute(*CTR, "import", f"/var/lib/pequod/node/{archive}")
    return name


def renamed(node: Foreground, name: str) -> str:
    """The same image as another version."""
    other = f"{name.removesuffix(':1')}:2"
    node.execute(*CTR, "tag", name, other)
    return other


class Running:
    """An operator outside of the cluster, which looks often, and can be killed once."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._kubeconfig = kubeconfig
        self._folder = folder
        self.was_killed = False
        self.operator = self._start("first.log")

    def _start(self, log: str) -> Operator:
        options = ("--chain-rpc=http://{address}:{port}", "--chain-interval=2s")
        return Operator(self._kubeconfig, self._folder / log, *options)

    def kill(self) -> None:
        self.was_killed = True
        self.operator.send(signal.SIGKILL)
        self.operator.process.wait()
        self.operator = self._start("second.log")


@pytest.fixture(scope="module")
def running(node: Foreground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The operator of these tests."""
    folder = tmp_path_factory.mktemp("operator")
    kubeconfig = operator_kubeconfig(node.api, folder / "kubeconfig")
    made = Running(kubeconfig, folder)
    try:
        made.operator.wait_until_leading()
        yield made
    finally:
        made.operator.send(signal.SIGKILL)
        made.operator.process.wait()


@pytest.fixture(scope="module")
def opchains(node: Foreground) -> Chains:
    """The OPChains of a namespace of their own."""
    assert node.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}).code == 201
    return Chains(Graphs(node.api, NAMESPACE, node.api))


@pytest.fixture(scope="module")
def l1(opchains: Chains, images: dict[str, str]) -> str:
    """A chain to settle on, in a pod: its URL."""
    labels = {"app": "l1"}
    container = {
        "name": "l1",
        "image": images["geth"],
        "args": l1_arguments(),
        "env": [{"name": "HOME", "value": "/tmp"}],
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "tmp", "emptyDir": {}}]}
    opchains.make("pods", object_("v1", "Pod", "l1", metadata={"labels": labels}, spec=pod))
    ports = {"selector": labels, "ports": [{"port": 8545}]}
    service = opchains.make("services", object_("v1", "Service", "l1", spec=ports))
    url = f"http://{service['spec']['clusterIP']}:8545"
    eventually(lambda: height(url) > 0, within=PATIENCE)
    return url


def height(url: str) -> int:
    try:
        return int(asyncio.run(jsonrpc.call(url, "eth_blockNumber")), 16)
    except (OSError, TimeoutError, jsonrpc.RpcError):
        return -1


@pytest.fixture(scope="module")
def files(l1: str, programs: OpStackPrograms) -> ChainFiles:
    """The configuration of a chain that begins at the newest block of L1."""

    async def make() -> ChainFiles:
        for account in (wallet.BATCHER, wallet.PROPOSER):
            await wallet.fund(l1, account.address, 10 * wallet.ETHER)
        return await chain_files(l1, programs, batcher_address=wallet.BATCHER.address)

    return asyncio.run(make())


@pytest.fixture(scope="module")
def factory(l1: str, programs: OpStackPrograms) -> str:
    """What a proposer submits to."""
    return asyncio.run(deploy_factory(l1, programs))


def make_secrets(opchains: Chains, files: ChainFiles) -> None:
    opchains.secret(f"{NAME}-genesis", **{"genesis.json": files.genesis.decode()})
    opchains.secret(f"{NAME}-rollup", **{"rollup.json": files.rollup.decode()})
    opchains.secret(f"{NAME}-l1", **{"chain.json": files.l1_chain_config.decode()})
    opchains.secret(f"{NAME}-jwt", jwt=files.jwt.decode())
    opchains.secret(f"{NAME}-batcher-key", key=wallet.BATCHER.key)
    opchains.secret(f"{NAME}-proposer-key", key=wallet.PROPOSER.key)
    opchains.secret("another-key", key=wallet.DEVELOPER.key)
    opchains.secret("another-jwt", jwt="not a secret at all")


def chain(url: str, factory: str, images: dict[str, str], name: str = NAME) -> Object:
    """An OPChain in a hurry: few confirmations, short channels, a proposal every few seconds."""
    return {
        "apiVersion": "rollup.oplabs.io/v1alpha1",
        "kind": "OPChain",
        "metadata": {"name": name},
        "spec": {
            "l1": {
                "chainId": 1337,
                "rpcUrl": url,
                "chainConfigSecret": f"{NAME}-l1",
                "contractAddresses": {"disputeGameFactory": factory},
            },
            "l2": {
                "chainId": 777,
                "genesisConfigSecret": f"{NAME}-genesis",
                "rollupConfigSecret": f"{NAME}-rollup",
                "jwtSecret": f"{NAME}-jwt",
            },
            "components": {
                "geth": {"image": images["geth"], "storage": {"size": "1Gi"}},
                "node": {
                    "image": images["node"],
                    "extraArgs": [
                        "--sequencer.l1-confs=0",
                        "--verifier.l1-confs=0",
                        "--l1.http-poll-interval=1s",
                        # There is no contract on this L1 whose storage could be proved.
                        "--l1.trustrpc=true",
                    ],
                },
                "batcher": {
                    "image": images["batcher"],
                    "signerPrivateKeySecret": f"{NAME}-batcher-key",
                    "extraArgs": ["--max-channel-duration=2", "--rpc.enable-admin=true", RECEIPTS],
                },
                "proposer": {
                    "image": images["proposer"],
                    "signerPrivateKeySecret": f"{NAME}-proposer-key",
                    "extraArgs": [
                        "--game-type=0",
                        "--proposal-interval=10s",
                        "--poll-interval=2s",
                        "--allow-non-finalized=true",
                        RECEIPTS,
                    ],
                },
            },
            "health": {"stallWindow": "25s", "fundsHours": 1},
        },
    }


def create(opchains: Chains, made: Object) -> None:
    answer = opchains.api.create(opchains._path, made)
    assert answer.code == 201, answer.message


def heads(opchains: Chains) -> tuple[int, int]:
    """The unsafe and the safe head, as the status has them."""
    found = opchains.component("node", NAME)
    return found.get("unsafeHeight", -1), found.get("safeHeight", -1)


def advances(opchains: Chains) -> None:
    """Wait until both heads have moved on, as the status has it."""
    unsafe, safe = heads(opchains)
    eventually(lambda: heads(opchains)[0] > unsafe and heads(opchains)[1] > safe, within=PATIENCE)


def settles(opchains: Chains) -> None:
    eventually(partial(opchains.is_ready, NAME), within=PATIENCE)
    assert opchains.chain_phase(NAME) == "Running"


def pods(opchains: Chains, component: str) -> list[Object]:
    query = f"?labelSelector=app.kubernetes.io/component={component}"
    found: list[Object] = opchains.api.get(opchains.path("pods") + query).body["items"]
    return found


@pytest.fixture(scope="module")
def live(  # noqa: PLR0917 -- everything that a chain needs
    node: Foreground,
    running: Running,
    opchains: Chains,
    l1: str,
    files: ChainFiles,
    factory: str,
    images: dict[str, str],
) -> Iterator[Chains]:
    """The chain, running; deleted in the end, it leaves nothing behind."""
    assert running.operator.process.poll() is None
    make_secrets(opchains, files)
    create(opchains, chain(l1, factory, images))
    own_volume(opchains, node, f"{NAME}-geth-data", USER)
    settles(opchains)
    yield opchains
    opchains.delete(NAME)
    eventually(lambda: not opchains.exists(NAME), within=PATIENCE)
    for kind in ("apps/v1/statefulsets", "apps/v1/deployments", "services", "configmaps", CLAIMS):
        path = f"{opchains.path(kind)}?labelSelector=pequod.io/graph"
        assert opchains.api.get(path).body["items"] == [], f"a deleted chain leaves {kind}"


def test_both_heads_advance_and_the_status_follows_them(
    live: Chains, l1: str, factory: str
) -> None:
    advances(live)
    assert live.component("batcher", NAME)["balance"].endswith(" ETH")
    eventually(lambda: "lastBatchSubmission" in live.component("batcher", NAME), within=PATIENCE)
    eventually(lambda: asyncio.run(proposals(l1, factory)) > 0, within=PATIENCE)
    eventually(lambda: "lastProposal" in live.component("proposer", NAME), within=PATIENCE)


@pytest.mark.parametrize("component", ["geth", "node", "batcher"])
def test_a_killed_pod_comes_back_and_the_chain_goes_on(live: Chains, component: str) -> None:
    (pod,) = pods(live, component)
    live.remove("pods", pod["metadata"]["name"], {"gracePeriodSeconds": 1})
    uid = pod["metadata"]["uid"]

    def replaced() -> bool:
        return [one["metadata"]["uid"] == uid for one in pods(live, component)] == [False]

    eventually(replaced, within=PATIENCE)
    settles(live)
    advances(live)


def test_an_upgrade_goes_on_after_the_operator_was_killed_and_has_one_batcher_at_most(
    live: Chains, running: Running, images: dict[str, str]
) -> None:
    changes = {"geth": {"image": images["new geth"]}, "node": {"image": images["new node"]}}
    live.patch(NAME, {"spec": {"components": changes}})
    order: list[str] = []

    def upgraded() -> bool:
        look(live, order)
        if "geth" in order and not running.was_killed:
            running.kill()
        return "batcher" in order and live.is_ready(NAME)

    eventually(upgraded, within=PATIENCE)
    assert order == ["stop", "geth", "node", "batcher"]
    settles(live)
    advances(live)


def look(live: Chains, order: list[str]) -> None:
    """Take down which pods are there, and that no rule of an upgrade is broken."""
    batchers, geth, node = (pods(live, one) for one in ("batcher", "geth", "node"))
    assert len(batchers) <= 1
    if not batchers:
        note(order, "stop")
    for name, found in (("geth", geth), ("node", node)):
        if any(one["spec"]["containers"][0]["image"].endswith(":2") for one in found):
            assert "stop" in order, f"{name} changed before the batcher had stopped"
            note(order, name)
    if batchers and "stop" in order:
        assert "node" in order, "the batcher started before op-node had changed"
        note(order, "batcher")


def note(order: list[str], what: str) -> None:
    if what not in order:
        order.append(what)


def test_a_stopped_batcher_is_a_stalled_safe_head_until_it_is_started(live: Chains) -> None:
    batcher = f"http://{live.live('services', f'{NAME}-batcher')['spec']['clusterIP']}:8548"
    asyncio.run(jsonrpc.call(batcher, "admin_stopBatcher"))
    eventually(lambda: live.reason(NAME, "BatcherReady") == "SafeHeadStalled", within=PATIENCE)
    assert live.chain_phase(NAME) == "Running"
    assert live.reason(NAME) == "SafeHeadStalled"
    asyncio.run(jsonrpc.call(batcher, "admin_startBatcher"))
    settles(live)
    advances(live)


def test_a_drained_signer_is_told_of_until_it_is_funded(
    live: Chains, l1: str, programs: OpStackPrograms
) -> None:
    asyncio.run(wallet.drain(l1, programs, wallet.BATCHER))
    eventually(lambda: live.reason(NAME, "BatcherReady") == "SignerFundsLow", within=PATIENCE)
    assert "send ether to it on L1" in live.message(NAME, "BatcherReady")
    asyncio.run(wallet.fund(l1, wallet.BATCHER.address, 1000 * wallet.ETHER))
    settles(live)
    advances(live)


REFUSED: dict[str, tuple[Object, str]] = {
    "jwt": ({"l2": {"jwtSecret": "another-jwt"}}, "must be 32 bytes as 64 hexadecimal digits"),
    "key": (
        {"components": {"batcher": {"signerPrivateKeySecret": "another-key"}}},
        f"is the key of {wallet.DEVELOPER.address}, but",
    ),
    "chain": ({"l2": {"chainId": 778}}, "is 777, but spec.l2.chainId is 778"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_wrong_configuration_is_refused_before_anything_starts(
    live: Chains, l1: str, factory: str, images: dict[str, str], what: str
) -> None:
    changes, message = REFUSED[what]
    name = f"wrong-{what}"
    made = chain(l1, factory, images, name)
    create(live, {**made, "spec": chains.merged(made["spec"], changes)})
    eventually(lambda: message in live.message(name, "ConfigurationValid"), within=PATIENCE)
    assert live.chain_phase(name) == "Error"
    for kind in ("apps/v1/statefulsets", "apps/v1/deployments", "pods", "configmaps"):
        found = live.api.get(live.path(kind)).body["items"]
        assert not [one for one in found if one["metadata"]["name"].startswith(name)]
    live.delete(name)
    eventually(lambda: not live.exists(name), within=PATIENCE)
