"""The first process of a real node: it makes the node's file systems, then waits for the end.

Run as a script inside fresh mount, pid and network namespaces. Everything that a node writes goes
to directories of its own control plane, through mounts that only this namespace sees; when this
process dies, the kernel ends all others in it and takes the mounts and network devices away.
Standard library only: once the mounts are made, the interpreter's own files may be out of sight.
"""

import signal
import subprocess
import sys
from pathlib import Path

INSIDE = Path("/var/lib/pequod")
"""Where the directory of the control plane is seen inside the node."""

PROGRAMS = INSIDE / "node/bin"
"""Where programs from outside are seen inside the node."""

SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    "net/ipv4/conf/all/rp_filter": "0",
    "net/bridge/bridge-nf-call-iptables": "1",
}


def main(arguments: list[str]) -> None:
    """Make the file systems, say so, and wait for children until the end."""
    root, *programs = map(Path, arguments)
    resolver = Path("/etc/resolv.conf").resolve()
    _mount("--make-rprivate", "/")
    _mount("--bind", root, root / "node/var-lib/pequod")
    _show_programs(root / "node/var-lib/pequod/node/bin", programs)
    _mount("--rbind", root / "node/var-lib", "/var/lib")
    _mount("--bind", INSIDE / "node/log", "/var/log")
    _mount("--bind", INSIDE / "node/tmp", "/tmp")  # noqa: S108 -- hidden, not used
    _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run")
    _replace_resolver(resolver)
    _mount("--make-rshared", "/")
    for name, value in SYSCTLS.items():
        _set_sysctl(Path("/proc/sys") / name, value)
    (INSIDE / "node/ready").touch()
    _reap_forever()


def _show_programs(folder: Path, programs: list[Path]) -> None:
    for program in programs:
        shown = folder / program.name
        shown.touch()
        _mount("--bind", program, shown)


def _replace_resolver(resolver: Path) -> None:
    """The resolver's file may be a link into what was just hidden."""
    if not resolver.exists():
        resolver.parent.mkdir(parents=True, exist_ok=True)
        resolver.touch()
    _mount("--bind", INSIDE / "node/resolv.conf", resolver)


def _set_sysctl(path: Path, value: str) -> None:
    # A kernel without bridge filtering has no such switch, and needs none.
    if path.exists():
        path.write_text(value)


def _mount(*arguments: object) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


def _reap_forever() -> None:
    """Children that nobody waits for end without a trace while their signal is ignored."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
