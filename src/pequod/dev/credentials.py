"""Who is who in a control plane: its certificates, and a kubeconfig for each component."""

from pequod.dev.components import FRONT_PROXY, LOOPBACK, REAL_NODE, Plan
from pequod.dev.kubeconfig import kubeconfig
from pequod.dev.pki import Authority, Credential, service_account_keys, write_private
from pequod.kube.auth import Access, ClientCertificate, Endpoint, Fixed, Identity

ADMINISTRATORS = "system:masters"


def write_credentials(plan: Plan, *, name: str) -> None:
    """Make every certificate, key and kubeconfig that the components of a plan name."""
    authority = Authority()
    pki, network = plan.layout.pki, plan.network
    addresses = (
        "localhost",
        "127.0.0.1",
        network.host,
        network.kubernetes_service,
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    )
    write_private(pki / "ca.crt", authority.certificate)
    private, public = service_account_keys()
    write_private(pki / "sa.key", private)
    write_private(pki / "sa.pub", public)
    _write(plan, "apiserver", authority.server("kube-apiserver", addresses=addresses))
    kubelet_client = authority.client("kube-apiserver", groups=(ADMINISTRATORS,))
    _write(plan, "apiserver-kubelet", kubelet_client)
    if network.node is not None:
        _write(plan, "kubelet", authority.server(REAL_NODE, addresses=(network.node, REAL_NODE)))
    front_proxy = Authority()
    write_private(pki / "front-proxy-ca.crt", front_proxy.certificate)
    _write(plan, "front-proxy", front_proxy.client(FRONT_PROXY))
    _write_etcd_credentials(plan)
    admin = authority.client("pequod-dev-admin", groups=(ADMINISTRATORS,))
    _write(plan, "admin", admin)
    _write_kubeconfigs(plan, authority, name=name, admin=admin)


def _write_etcd_credentials(plan: Plan) -> None:
    """An authority for etcd alone: who may talk to the API server may not talk to its store."""
    authority = Authority()
    write_private(plan.layout.pki / "etcd-ca.crt", authority.certificate)
    _write(plan, "etcd", authority.peer("etcd", addresses=(LOOPBACK, "localhost")))
    _write(plan, "etcd-client", authority.client("kube-apiserver"))


def access(plan: Plan) -> Access:
    """How the administrator reaches the API server."""
    pki = plan.layout.pki
    certificate = ClientCertificate(
        (pki / "admin.crt").read_bytes(), (pki / "admin.key").read_bytes()
    )
    return Access(
        endpoint=Endpoint(server=plan.server, authority=(pki / "ca.crt").read_bytes()),
        credentials=Fixed(Identity(certificate=certificate)),
    )


def _write_kubeconfigs(plan: Plan, authority: Authority, *, name: str, admin: Credential) -> None:
    users = {
        "controller-manager": authority.client("system:kube-controller-manager"),
        "scheduler": authority.client("system:kube-scheduler"),
        "kwok": authority.client("kwok", groups=(ADMINISTRATORS,)),
        "kubelet": authority.client(f"system:node:{REAL_NODE}", groups=("system:nodes",)),
        "kube-proxy": authority.client("system:kube-proxy"),
        "coredns": authority.client("system:coredns"),
    }
    targets = {plan.layout.kubeconfig_of(user): credential for user, credential in users.items()}
    for path, credential in (targets | {plan.layout.kubeconfig: admin}).items():
        content = kubeconfig(
            name=f"pequod-{name}",
            server=plan.server,
            authority=authority.certificate,
            user=credential,
        )
        write_private(path, content)


def _write(plan: Plan, name: str, credential: Credential) -> None:
    write_private(plan.layout.pki / f"{name}.crt", credential.certificate)
    write_private(plan.layout.pki / f"{name}.key", credential.key)
