"""A real SSH server: OpenSSH's own, on the loopback, with keys that are made for it.

Needs the distribution package `openssh-server`; `make tools` installs it.
"""

import asyncio
import getpass
import os
import shutil
import socket
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from doubles.gitserver import HOST
from waiting import eventually

PRIVILEGE_SEPARATION = Path("/run/sshd")


def sshd_program() -> str | None:
    """Where the server is, if it is installed."""
    return shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")


@dataclass(frozen=True)
class Pair:
    """A key, in the two forms that OpenSSH writes."""

    private: str
    public: str

    @staticmethod
    def made() -> "Pair":
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
        return Pair(private.decode(), public.decode())


@dataclass
class SshServer:
    """The server; repositories are reached by their path on this machine."""

    folder: Path
    host_key: Pair = field(default_factory=Pair.made)
    client_key: Pair = field(default_factory=Pair.made)
    protocol: bool = True
    """Whether clients may ask for a newer protocol than that of 2005; a plain sshd says no."""
    port: int = 0

    @property
    def known_hosts(self) -> str:
        return f"[{HOST}]:{self.port} {self.host_key.public}\n"

    def url(self, repository: Path) -> str:
        return f"ssh://{getpass.getuser()}@{HOST}:{self.port}{repository}"

    async def start(self) -> None:
        program = sshd_program()
        assert program is not None, "sshd is missing: install openssh-server (`make tools`)"
        if os.geteuid() == 0:
            PRIVILEGE_SEPARATION.mkdir(exist_ok=True)
        self.folder.mkdir()
        self.port = _free_port()
        arguments = ("-D", "-e", "-f", str(self._configuration()))
        self._log = (self.folder / "log").open("wb")
        self._process = await asyncio.create_subprocess_exec(
            program, *arguments, stderr=self._log, stdin=asyncio.subprocess.DEVNULL
        )
        log = self.folder / "log"
        await eventually(lambda: b"listening" in log.read_bytes(), "sshd listens")

    async def stop(self) -> None:
        self._process.terminate()
        await self._process.wait()
        self._log.close()

    def _configuration(self) -> Path:
        files = {"host_key": self.host_key.private, "authorized": self.client_key.public}
        for name, content in files.items():
            (self.folder / name).touch(mode=0o600)
            (self.folder / name).write_text(f"{content.strip()}\n")
        settings = (
            f"ListenAddress 127.0.0.1:{self.port}",
            f"HostKey {self.folder / 'host_key'}",
            f"AuthorizedKeysFile {self.folder / 'authorized'}",
            "StrictModes no",
            "UsePAM no",
            "PidFile none",
            "PasswordAuthentication no",
            "PermitRootLogin prohibit-password",
            "AcceptEnv GIT_PROTOCOL" if self.protocol else "",
        )
        path = self.folder / "sshd_config"
        path.write_text("".join(f"{line}\n" for line in settings))
        return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
