"""The command line of each component: from a layout and its ports, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pequod.dev.layout import Layout, Ports

NodeKind = Literal["simulated", "real", "none"]

LOOPBACK = "127.0.0.1"

REAL_NODE = "real"
"""The name of a real node."""

FRONT_PROXY = "front-proxy-client"
"""The user whom the API servers behind ours believe about whom they serve."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """The addresses of one control plane."""

    host: str = LOOPBACK
    """Where the API server listens."""
    services: str = "10.96.0.0/16"
    pods: str = "10.244.0.0/16"
    node: str | None = None
    """Where a real node is reached."""

    @property
    def kubernetes_service(self) -> str:
        """The address of the Service `kubernetes`: the first one of the range."""
        return self.services.rsplit(".", 1)[0] + ".1"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything that decides how a control plane is run."""

    layout: Layout
    ports: Ports
    network: Network
    node: NodeKind
    api_server: tuple[str, ...] = ()
    """Flags for the API server besides our own, each as `name=value`; the last one wins."""

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://{self.network.host}:{self.ports.api_server}"


def addresses(plan: Plan) -> dict[str, tuple[tuple[str, int], ...]]:
    """The addresses that each component listens on."""
    ports = plan.ports
    return {
        "etcd": ((LOOPBACK, ports.etcd_client), (LOOPBACK, ports.etcd_peer)),
        "kube-apiserver": ((plan.network.host, ports.api_server),),
        "kube-controller-manager": ((LOOPBACK, ports.controller_manager),),
        "kube-scheduler": ((LOOPBACK, ports.scheduler),),
    }


def _flags(options: Mapping[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items()]


def etcd(plan: Plan) -> list[str]:
    """Where everything is stored; never synced to disk, since it ends with the control plane."""
    client = f"https://{LOOPBACK}:{plan.ports.etcd_client}"
    peer = f"https://{LOOPBACK}:{plan.ports.etcd_peer}"
    pki = plan.layout.pki
    return _flags(
        {
            "name": "default",
            "data-dir": plan.layout.data,
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"default={peer}",
            "client-cert-auth": "true",
            "trusted-ca-file": pki / "etcd-ca.crt",
            "cert-file": pki / "etcd.crt",
            "key-file": pki / "etcd.key",
            "peer-client-cert-auth": "true",
            "peer-trusted-ca-file": pki / "etcd-ca.crt",
            "peer-cert-file": pki / "etcd.crt",
            "peer-key-file": pki / "etcd.key",
            "unsafe-no-fsync": "true",
            "quota-backend-bytes": 4 * 1024**3,
            "auto-compaction-retention": "1h",
            "log-level": "warn",
        }
    )


def api_server(plan: Plan) -> list[str]:
    """The API server, with RBAC and every admission plugin that is on by default."""
    pki = plan.layout.pki
    ours = _flags(
        {
            "etcd-servers": f"https://{LOOPBACK}:{plan.ports.etcd_client}",
            "etcd-cafile": pki / "etcd-ca.crt",
            "etcd-certfile": pki / "etcd-client.crt",
            "etcd-keyfile": pki / "etcd-client.key",
            "bind-address": plan.network.host,
            "advertise-address": plan.network.host,
            "secure-port": plan.ports.api_server,
            "endpoint-reconciler-type": "none" if plan.node != "real" else "lease",
            "service-cluster-ip-range": plan.network.services,
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "allow-privileged": "true",
            "client-ca-file": pki / "ca.crt",
            "tls-cert-file": pki / "apiserver.crt",
            "tls-private-key-file": pki / "apiserver.key",
            "kubelet-client-certificate": pki / "apiserver-kubelet.crt",
            "kubelet-client-key": pki / "apiserver-kubelet.key",
            "kubelet-certificate-authority": pki / "ca.crt",
            "kubelet-preferred-address-types": "InternalIP",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": pki / "sa.pub",
            "service-account-signing-key-file": pki / "sa.key",
            "requestheader-client-ca-file": pki / "front-proxy-ca.crt",
            "requestheader-allowed-names": FRONT_PROXY,
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "proxy-client-cert-file": pki / "front-proxy.crt",
            "proxy-client-key-file": pki / "front-proxy.key",
        }
    )
    return [*ours, *(f"--{flag}" for flag in plan.api_server)]


def controller_manager(plan: Plan) -> list[str]:
    """The controllers of Kubernetes; with a real node it also makes volumes."""
    pki = plan.layout.pki
    kubeconfig = plan.layout.kubeconfig_of("controller-manager")
    options: dict[str, object] = {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": LOOPBACK,
        "secure-port": plan.ports.controller_manager,
        "leader-elect": "false",
        "use-service-account-credentials": "true",
        "kube-api-qps": 300,
        "kube-api-burst": 600,
        "service-account-private-key-file": pki / "sa.key",
        "root-ca-file": pki / "ca.crt",
        "allocate-node-cidrs": "true",
        "cluster-cidr": plan.network.pods,
        "service-cluster-ip-range": plan.network.services,
        "flex-volume-plugin-dir": plan.layout.config / "flexvolumes",
    }
    if plan.node == "real":
        options["enable-hostpath-provisioner"] = "true"
    return _flags(options)


def scheduler(plan: Plan) -> list[str]:
    """The scheduler."""
    kubeconfig = plan.layout.kubeconfig_of("scheduler")
    return _flags(
        {
            "kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "bind-address": LOOPBACK,
            "secure-port": plan.ports.scheduler,
            "leader-elect": "false",
            "kube-api-qps": 300,
            "kube-api-burst": 600,
        }
    )


def kwok(plan: Plan) -> list[str]:
    """The simulation of nodes, pods and volumes."""
    return [
        *_flags(
            {
                "kubeconfig": plan.layout.kubeconfig_of("kwok"),
                "manage-all-nodes": "true",
                "node-ip": "10.0.0.1",
                "cidr": plan.network.pods,
                "node-lease-duration-seconds": 40,
            }
        ),
        *_flags({"config": plan.layout.config / "kwok-stages.yaml"}),
        *_flags({"config": plan.layout.config / "kwok-volumes.yaml"}),
    ]
