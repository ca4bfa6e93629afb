"""The directory of one control plane: what is where in it, and which ports it uses."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """Paths below the directory of one control plane."""

    root: Path

    @property
    def pki(self) -> Path:
        """Certificates and keys."""
        return self.root / "pki"

    @property
    def logs(self) -> Path:
        """One log for each component."""
        return self.root / "logs"

    @property
    def data(self) -> Path:
        """What etcd stores."""
        return self.root / "etcd"

    @property
    def config(self) -> Path:
        """Configuration files of components."""
        return self.root / "config"

    @property
    def node(self) -> Path:
        """Everything of the real node: its file systems, its configuration."""
        return self.root / "node"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the administrator."""
        return self.root / "kubeconfig"

    @property
    def kubectl_cache(self) -> Path:
        """What kubectl remembers of this control plane; it ends with it."""
        return self.root / "kubectl"

    def kubeconfig_of(self, user: str) -> Path:
        """The kubeconfig of one component."""
        return self.config / f"{user}.kubeconfig"

    def create(self) -> None:
        """Make the directories; nobody else may look into them."""
        self.root.mkdir(parents=True, mode=0o700)
        for folder in (self.pki, self.logs, self.data, self.config, self.node):
            folder.mkdir(mode=0o700)


@dataclass(frozen=True, kw_only=True)
class Ports:
    """The ports of one control plane."""

    api_server: int
    etcd_client: int
    etcd_peer: int
    controller_manager: int
    scheduler: int
    registry: int
    """Of the local image registry, which only a real node has."""
    operator_health: int
    operator_metrics: int
