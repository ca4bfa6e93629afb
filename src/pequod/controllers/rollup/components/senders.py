"""What op-batcher and op-proposer have in common: they send transactions to L1, from one account.

Both are StatefulSets: two pods that send from one account would get into each other's way.
"""

from collections.abc import Sequence
from typing import Literal

from pequod.api.graph import Node
from pequod.api.rollup import Batcher, Proposer
from pequod.controllers.rollup.accounts import Signer
from pequod.controllers.rollup.components.chain import METRICS, Chain, digest
from pequod.controllers.rollup.components.l1 import L1_URL, l1_environment, l1_secret
from pequod.controllers.rollup.components.objects import (
    container,
    from_secret,
    health,
    pod,
    port,
    secret,
    service,
    stateful_set,
)
from pequod.controllers.rollup.configuration import KEY
from pequod.kube.objects import Object

Sender = Literal["batcher", "proposer"]
SENDERS: tuple[Sender, ...] = ("batcher", "proposer")


def sender(
    chain: Chain, component: Sender, signer: Signer, arguments: Sequence[str], rpc: int
) -> tuple[Node, ...]:
    """Everything of a program that sends."""
    asked: Batcher | Proposer = getattr(chain.spec.components, component)
    hidden = {KEY: signer.key} | l1_secret(chain)
    ports = [port("rpc", rpc)]
    arguments = [*arguments, "--rpc.addr=0.0.0.0", f"--rpc.port={rpc}"]
    if asked.metrics_enabled:
        ports.append(port("metrics", METRICS))
        arguments += ["--metrics.enabled=true", f"--metrics.port={METRICS}"]
    template = _pod(chain, component, asked, signer, arguments, ports)
    after = tuple(one for one in ("geth", "node") if one in chain.enabled())
    own = (f"{component}-secret", f"{component}-service")
    return (
        Node(id=f"{component}-secret", object=secret(chain, component, hidden)),
        Node(id=f"{component}-service", object=service(chain, component, ports)),
        Node(
            id=component,
            object=stateful_set(chain, component, template),
            depends_on=(*own, *after),
        ),
    )


def _pod(
    chain: Chain,
    component: Sender,
    asked: Batcher | Proposer,
    signer: Signer,
    arguments: Sequence[str],
    ports: Sequence[Object],
) -> Object:
    prefix, name = f"OP_{component.upper()}", chain.object_name(component)
    running = container(
        component,
        asked.image,
        [f"op-{component}"],
        [*arguments, *asked.extra_args],
        resources=asked.resources,
        environment=[
            l1_environment(chain, component, f"{prefix}_L1_ETH_RPC"),
            from_secret(f"{prefix}_PRIVATE_KEY", name, KEY),
        ],
        ports=ports,
        health=health("/healthz", "rpc"),
    )
    config = digest(signer.address, l1_secret(chain).get(L1_URL))
    return pod(chain, component, [running], config=config, grace=300)
