"""How git starts ssh: with one key, towards one address, believing one list of host keys."""

import shlex
from pathlib import Path

from pequod.sources.git.remote import Remote

_CONNECT_SECONDS = 15


def ssh_command(remote: Remote, number: str, key: str, known_hosts: str, *, config: Path) -> str:
    """Write a configuration, and yield the command line for it.

    A shell reads that line, so it has nothing of other people in it; with `-F`, ssh reads neither
    the user's configuration nor the system's.
    """
    config.touch(mode=0o600)
    config.write_text("".join(f"{line}\n" for line in _lines(remote, number, key, known_hosts)))
    return f"ssh -F {shlex.quote(str(config))}"


def _lines(remote: Remote, number: str, key: str, known_hosts: str) -> tuple[str, ...]:
    # As ssh itself spells it in known_hosts when the port is another one.
    name = remote.host if remote.port == 22 else f"[{remote.host}]:{remote.port}"
    return (
        "Host *",
        f"HostName {number}",
        f"HostKeyAlias {name}",
        f"IdentityFile {_quoted(key)}",
        "IdentitiesOnly yes",
        "IdentityAgent none",
        f"UserKnownHostsFile {_quoted(known_hosts)}",
        "GlobalKnownHostsFile /dev/null",
        "StrictHostKeyChecking yes",
        "UpdateHostKeys no",
        "BatchMode yes",
        "PreferredAuthentications publickey",
        "ForwardAgent no",
        "ForwardX11 no",
        "ClearAllForwardings yes",
        "PermitLocalCommand no",
        "ControlMaster no",
        "ControlPath none",
        f"ConnectTimeout {_CONNECT_SECONDS}",
        "ServerAliveInterval 10",
        "ServerAliveCountMax 3",
        "LogLevel ERROR",
    )


def _quoted(path: str) -> str:
    """A path for ssh's own configuration, where a percent sign begins a variable."""
    return f'"{path.replace("%", "%%")}"'
