"""op-node: derives the chain from L1, and makes its blocks."""

from pequod.api.graph import Node
from pequod.controllers.rollup.components.chain import (
    ENGINE,
    METRICS,
    NODE_P2P,
    NODE_RPC,
    Chain,
    digest,
)
from pequod.controllers.rollup.components.l1 import L1_URL, l1_environment, l1_secret
from pequod.controllers.rollup.components.objects import (
    config_map,
    container,
    deployment,
    health,
    mounted,
    pod,
    port,
    secret,
    service,
)
from pequod.controllers.rollup.configuration import JWT, L1_CHAIN, ROLLUP
from pequod.kube.objects import Object

_CONFIG = "/config"
_SECRETS = "/secrets"


def node(chain: Chain) -> tuple[Node, ...]:
    """Everything of op-node."""
    known = chain.configuration
    files = {ROLLUP: known.rollup}
    if known.l1_chain is not None:
        files[L1_CHAIN] = known.l1_chain
    hidden = {JWT: known.jwt} | l1_secret(chain)
    after = ("geth",) if chain.spec.components.geth.enabled else ()
    return (
        Node(id="node-config", object=config_map(chain, "node", files)),
        Node(id="node-secret", object=secret(chain, "node", hidden)),
        Node(id="node-service", object=service(chain, "node", _ports(chain))),
        Node(
            id="node",
            object=deployment(chain, "node", _pod(chain)),
            depends_on=("node-config", "node-secret", "node-service", *after),
        ),
    )


def _ports(chain: Chain) -> list[Object]:
    ports = [port("rpc", NODE_RPC), port("p2p", NODE_P2P), port("p2p-udp", NODE_P2P, "UDP")]
    if chain.spec.components.node.metrics_enabled:
        ports.append(port("metrics", METRICS))
    return ports


def _pod(chain: Chain) -> Object:
    asked, known = chain.spec.components.node, chain.configuration
    name = chain.object_name("node")
    running = container(
        "node",
        asked.image,
        ["op-node"],
        [*_arguments(chain), *asked.extra_args],
        resources=asked.resources,
        mounts=[mounted("config", _CONFIG), mounted("secrets", _SECRETS)],
        environment=[l1_environment(chain, "node", "OP_NODE_L1_ETH_RPC")],
        ports=_ports(chain),
        health=health("/healthz", "rpc"),
    )
    keys = [{"key": JWT, "path": JWT}]
    volumes: list[Object] = [
        {"name": "config", "configMap": {"name": name}},
        {"name": "secrets", "secret": {"secretName": name, "defaultMode": 0o440, "items": keys}},
    ]
    hidden = l1_secret(chain).get(L1_URL)
    config = digest(known.rollup, known.l1_chain, known.jwt, hidden)
    return pod(chain, "node", [running], config=config, grace=60, volumes=volumes)


def _arguments(chain: Chain) -> list[str]:
    asked = chain.spec
    arguments = [
        f"--l2={chain.url('geth', ENGINE)}",
        f"--l2.jwt-secret={_SECRETS}/{JWT}",
        "--l2.enginekind=geth",
        f"--rollup.config={_CONFIG}/{ROLLUP}",
        "--l1.rpckind=standard",
        "--sequencer.enabled=true",
        "--p2p.disable=true",
        "--rpc.addr=0.0.0.0",
        f"--rpc.port={NODE_RPC}",
    ]
    if chain.configuration.l1_chain is not None:
        arguments.append(f"--rollup.l1-chain-config={_CONFIG}/{L1_CHAIN}")
    beacon = asked.l1.beacon_url
    arguments.append(f"--l1.beacon={beacon}" if beacon else "--l1.beacon.ignore=true")
    if asked.components.node.metrics_enabled:
        arguments += ["--metrics.enabled=true", f"--metrics.port={METRICS}"]
    return arguments
