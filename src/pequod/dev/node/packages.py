"""The distribution packages of a real node, and what stands in the way of one on this machine."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from pequod.dev.commands import attempt, search_path
from pequod.dev.failure import DevError

PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
}
"""Each program that a real node runs, and the Debian package that it comes from."""

_SSH_SERVER = "openssh-server"
_SYSTEMD = Path("/run/systemd/system")

_CNI_FOLDERS = ("/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni")
_CNI_PACKAGE = "containernetworking-plugins"
_APT_TIMEOUT = 600.0


def cni_plugins() -> Path | None:
    """The folder with the plugins that connect pods; distributions differ about it."""
    return next((Path(name) for name in _CNI_FOLDERS if Path(name, "bridge").exists()), None)


def missing_packages() -> list[str]:
    """Packages without which a real node cannot run."""
    path = search_path()
    missing = {
        name for program, name in PROGRAMS.items() if shutil.which(program, path=path) is None
    }
    if cni_plugins() is None:
        missing.add(_CNI_PACKAGE)
    return sorted(missing)


def obstacle() -> DevError | None:
    """Why there cannot be a real node here; None when there can."""
    if sys.platform != "linux":
        return DevError("a real node needs Linux", next_step="Use --node simulated.")
    if os.geteuid() != 0:
        return DevError(
            "a real node needs root: it makes namespaces, mounts and network devices",
            next_step="Run it as root, or use --node simulated.",
        )
    missing = missing_packages()
    if missing:
        return DevError(
            f"a real node needs packages that are not installed: {', '.join(missing)}",
            next_step="Run `make tools` (Debian, as root), or install them yourself.",
        )
    return None


async def install_packages(say: Callable[[str], None]) -> None:
    """Install what is missing, where that is ours to do: as root on Debian."""
    missing = [*missing_packages(), *_missing_ssh_server(say)]
    if not missing or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    say(f"Installing {', '.join(missing)} …")
    await _apt("update")
    await _apt("install", "--yes", "--no-install-recommends", *missing)


def _missing_ssh_server(say: Callable[[str], None]) -> list[str]:
    """What tests of git over SSH need; not where installing it would open the machine's port 22."""
    if shutil.which("sshd", path=search_path()) is not None:
        return []
    if _SYSTEMD.exists():
        say(f"For the tests of git over SSH, install {_SSH_SERVER}; it need not be running.")
        return []
    return [_SSH_SERVER]


async def _apt(*arguments: str) -> None:
    quietly = {"DEBIAN_FRONTEND": "noninteractive"}
    command = ("apt-get", "--quiet", *arguments)
    result = await attempt(*command, timeout=_APT_TIMEOUT, variables=quietly)
    if result.code != 0:
        tail = "\n".join((result.output + result.errors).splitlines()[-5:])
        raise DevError(
            f"apt-get {arguments[0]} failed:\n{tail}",
            next_step="Mend what it says, or install the packages yourself.",
        )
