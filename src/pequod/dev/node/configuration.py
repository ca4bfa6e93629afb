"""The configuration files of a real node's programs."""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from pequod.dev.components import REAL_NODE, Plan
from pequod.dev.layout import Layout
from pequod.dev.node.network import Slot, mark
from pequod.dev.node.packages import cni_plugins

PAUSE_IMAGE = "pequod.io/pause:1"
LOCAL_REGISTRY = "localhost:5000"
"""The name of the local registry in image references; the node knows where it really is."""


def write_configuration(plan: Plan, slot: Slot, *, inside: Layout) -> None:
    """Write every configuration file; those for inside the node name its paths."""
    node = plan.layout.node
    for folder in ("var-lib/pequod", "bin", "log", "tmp", "cni", "registry"):
        node.joinpath(folder).mkdir(parents=True)
    node.joinpath("tmp").chmod(0o1777)
    registry = f"{slot.network.host}:{plan.ports.registry}"
    for name in (LOCAL_REGISTRY, registry):
        hosts = node / "registries" / name
        hosts.mkdir(parents=True)
        hosts.joinpath("hosts.toml").write_text(_registry_hosts(registry))
    (node / "resolv.conf").write_text(f"nameserver {slot.network.host}\n")
    (node / "containerd.toml").write_text(_containerd(inside))
    (node / "cni/10-pequod.conflist").write_bytes(msgspec.json.encode(_cni(slot)))
    _write_yaml(node / "kubelet.yaml", _kubelet(plan, slot, inside))
    _write_yaml(node / "kube-proxy.yaml", _kube_proxy(plan, inside))
    _write_yaml(node / "registry.yaml", _registry(plan, registry))
    (node / "Corefile").write_text(_corefile(plan))


def dns_address(plan: Plan) -> str:
    """The address of the Service that pods ask for names."""
    return plan.network.services.rsplit(".", 1)[0] + ".10"


def _containerd(inside: Layout) -> str:
    return f"""\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "/run/containerd/containerd.sock"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE_IMAGE}"
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{cni_plugins()}"
conf_dir = "{inside.node}/cni"

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{inside.node}/registries"
"""


def _registry_hosts(registry: str) -> str:
    return f"""\
server = "http://{registry}"

[host."http://{registry}"]
capabilities = ["pull", "resolve", "push"]
"""


def _cni(slot: Slot) -> dict[str, Any]:
    return {
        "cniVersion": "1.0.0",
        "name": "pequod",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "ipMasq": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": slot.network.pods}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def _kubelet(plan: Plan, slot: Slot, inside: Layout) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(inside.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(inside.pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(inside.pki / "kubelet.key"),
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{mark(slot.owner)}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "localStorageCapacityIsolation": False,
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "0%",
            "imagefs.available": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "volumePluginDir": "/var/lib/kubelet/volumeplugins",
        "resolvConf": "/etc/resolv.conf",
        "clusterDomain": "cluster.local",
        "clusterDNS": [dns_address(plan)],
        "nodeStatusUpdateFrequency": "4s",
    }


def _kube_proxy(plan: Plan, inside: Layout) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(inside.kubeconfig_of("kube-proxy"))},
        "clusterCIDR": plan.network.pods,
        "hostnameOverride": REAL_NODE,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        # Connection tracking is a setting of the whole machine, which is not the node's to change.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }


def _registry(plan: Plan, address: str) -> dict[str, Any]:
    return {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {
            "filesystem": {"rootdirectory": str(plan.layout.node / "registry")},
            "delete": {"enabled": True},
        },
        "http": {"addr": address},
    }


def _corefile(plan: Plan) -> str:
    upstream = Path("/etc/resolv.conf")
    known = upstream.exists() and "nameserver" in upstream.read_text()
    forward = f"forward . {upstream}" if known else ""
    return f"""\
.:53 {{
    bind {plan.network.host}
    errors
    cache 5
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig "{plan.layout.kubeconfig_of("coredns")}"
        ttl 5
    }}
    {forward}
}}
"""


def _write_yaml(path: Path, document: dict[str, Any]) -> None:
    path.write_text(yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False))
