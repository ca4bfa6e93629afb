"""op-geth: executes blocks, keeps the state, serves users."""

from pequod.api.graph import ApplyPolicy, DeletionPolicy, Node, ReadyWhen
from pequod.controllers.rollup.components.chain import (
    ENGINE,
    GETH_METRICS,
    HTTP,
    P2P,
    WS,
    Chain,
    digest,
)
from pequod.controllers.rollup.components.objects import (
    config_map,
    container,
    health,
    metadata,
    mounted,
    pod,
    port,
    secret,
    service,
    stateful_set,
)
from pequod.controllers.rollup.configuration import GENESIS, JWT, PACKED_GENESIS
from pequod.kube.objects import Object

ORIGIN = "rollup.oplabs.io/origin"
"""Annotation of the data volume: which chain it holds."""
FORKS = "rollup.oplabs.io/forks"
"""Annotation of the data volume: when each fork comes that the chain knows."""
DATA = "geth-data"
_VOLUME = "/data"
_CONFIG = "/config"
_SECRETS = "/secrets"


def geth(chain: Chain) -> tuple[Node, ...]:
    """Everything of op-geth."""
    jwt = {JWT: chain.configuration.jwt}
    return (
        Node(id="geth-config", object=_files(chain)),
        Node(id="geth-secret", object=secret(chain, "geth", jwt)),
        _data(chain),
        Node(id="geth-service", object=_service(chain)),
        Node(
            id="geth",
            object=stateful_set(chain, "geth", _pod(chain)),
            depends_on=("geth-config", "geth-secret", DATA, "geth-service"),
        ),
    )


def _service(chain: Chain) -> Object:
    """Reached also while it is slow to answer: op-node has no other engine to go to."""
    made = service(chain, "geth", _ports(chain))
    return made | {"spec": made["spec"] | {"publishNotReadyAddresses": True}}


def _files(chain: Chain) -> Object:
    known = chain.configuration
    if known.is_packed:
        return config_map(chain, "geth", {}, {PACKED_GENESIS: known.genesis})
    return config_map(chain, "geth", {GENESIS: known.genesis})


def _data(chain: Chain) -> Node:
    """The volume; it is bound when its pod is scheduled, which nothing must wait for."""
    storage = chain.spec.components.geth.storage
    volume = metadata(chain, "geth") | {
        "name": f"{chain.name}-{DATA}",
        "annotations": {
            ORIGIN: chain.configuration.identity,
            FORKS: ",".join(f"{name}={time}" for name, time in chain.configuration.forks.items()),
        },
    }
    spec: Object = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": storage.size}},
    }
    if storage.storage_class is not None:
        spec["storageClassName"] = storage.storage_class
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": volume, "spec": spec}
    kept: DeletionPolicy | None = "Orphan" if chain.spec.deletion_policy == "Orphan" else None
    policy = ApplyPolicy(mode="Adopt", deletion_policy=kept)
    return Node(id=DATA, object=claim, apply_policy=policy, ready_when=(ReadyWhen(type="Exists"),))


def _ports(chain: Chain) -> list[Object]:
    ports = [
        port("http", HTTP),
        port("ws", WS),
        port("engine", ENGINE),
        port("p2p", P2P),
    ]
    if chain.spec.components.geth.metrics_enabled:
        ports.append(port("metrics", GETH_METRICS))
    return ports


def _pod(chain: Chain) -> Object:
    asked, known = chain.spec.components.geth, chain.configuration
    running = container(
        "geth",
        asked.image,
        ["geth"],
        [*_arguments(chain), *asked.extra_args],
        resources=asked.resources,
        mounts=[mounted("data", _VOLUME, read_only=False), mounted("secrets", _SECRETS)],
        ports=_ports(chain),
        health=health("/", "http"),
    )
    name = chain.object_name("geth")
    volumes: list[Object] = [
        {"name": "data", "persistentVolumeClaim": {"claimName": f"{chain.name}-{DATA}"}},
        {"name": "config", "configMap": {"name": name}},
        {"name": "secrets", "secret": {"secretName": name, "defaultMode": 0o440}},
    ]
    before = [_init(chain, "config")]
    if known.is_packed:
        volumes.append({"name": "unpacked", "emptyDir": {}})
        before = [_unpack(chain), _init(chain, "unpacked")]
    config = digest(known.genesis_digest, known.jwt)
    return pod(chain, "geth", [running], config=config, grace=300, volumes=volumes, before=before)


def _unpack(chain: Chain) -> Object:
    asked = chain.spec.components.geth
    script = f"gunzip -c /packed/{PACKED_GENESIS} > {_CONFIG}/{GENESIS}"
    return container(
        "unpack",
        asked.image,
        ["sh", "-c", script],
        [],
        resources=asked.resources,
        mounts=[mounted("config", "/packed"), mounted("unpacked", _CONFIG, read_only=False)],
    )


def _init(chain: Chain, volume: str) -> Object:
    """Write the first block to an empty volume; what has it already learns of new forks only."""
    asked = chain.spec.components.geth
    return container(
        "init",
        asked.image,
        ["geth"],
        ["init", f"--datadir={_VOLUME}", "--state.scheme=hash", f"{_CONFIG}/{GENESIS}"],
        resources=asked.resources,
        mounts=[mounted("data", _VOLUME, read_only=False), mounted(volume, _CONFIG)],
    )


def _arguments(chain: Chain) -> list[str]:
    name = chain.object_name("geth")
    within = f"{name}.{chain.namespace}"
    hosts = f"localhost,{name},{within},{within}.svc,{within}.svc.cluster.local"
    arguments = [
        f"--datadir={_VOLUME}",
        f"--networkid={chain.spec.l2.chain_id}",
        "--syncmode=full",
        "--gcmode=archive",
        "--state.scheme=hash",
        "--http",
        "--http.addr=0.0.0.0",
        f"--http.port={HTTP}",
        "--http.api=eth,net,web3,txpool",
        f"--http.vhosts={hosts}",
        "--ws",
        "--ws.addr=0.0.0.0",
        f"--ws.port={WS}",
        "--ws.api=eth,net,web3,txpool",
        "--authrpc.addr=0.0.0.0",
        f"--authrpc.port={ENGINE}",
        f"--authrpc.vhosts={hosts}",
        f"--authrpc.jwtsecret={_SECRETS}/{JWT}",
        f"--port={P2P}",
        "--nodiscover",
        "--maxpeers=0",
        "--ipcdisable",
        "--rollup.disabletxpoolgossip=true",
    ]
    if chain.spec.components.geth.metrics_enabled:
        arguments += ["--metrics", "--metrics.addr=0.0.0.0", f"--metrics.port={GETH_METRICS}"]
    return arguments
