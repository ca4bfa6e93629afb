"""A control plane for tests, started as a user does, and a small client for it."""

import asyncio
import copy
import fcntl
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

import yaml

from pequod.dev.programs import find_programs

PEQUOD = (sys.executable, "-m", "pequod")


def pequod(
    *arguments: str, state: Path, check: bool = True, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `pequod` as a user does, with its state in a place of the test's own."""
    return subprocess.run(
        [*PEQUOD, *arguments],
        check=check,
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=240,
        env=os.environ | {"PEQUOD_STATE_DIR": str(state)} | environment,
    )


@cache
def kubectl_command() -> tuple[str, ...]:
    """The kubectl of the control plane; the tests rely on no other."""
    return asyncio.run(find_programs(("kubectl",), lambda _: None)).command("kubectl")


@dataclass(frozen=True)
class Answer:
    """What the API server said."""

    code: int
    body: dict[str, Any]

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


class Api:
    """The API server of a kubeconfig, spoken to directly, so that its own words can be read."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.server = cluster["server"]
        self._tls = ssl.create_default_context(
            cadata=b64decode(cluster["certificate-authority-data"]).decode()
        )
        pem = kubeconfig.parent / "pki"
        assert user
        self._tls.load_cert_chain(pem / "admin.crt", pem / "admin.key")
        self._headers: dict[str, str] = {}
        self._options: tuple[str, ...] = ()

    def acting_as(self, user: str, *, group: str) -> Self:
        """The same server, spoken to in somebody's name and with the rights of a group."""
        other = copy.copy(self)
        other._headers = {"Impersonate-User": user, "Impersonate-Group": group}
        other._options = (f"--as={user}", f"--as-group={group}")
        return other

    def call(self, method: str, path: str, body: object = None, *, kind: str = "json") -> Answer:
        """One request; a server that asks for patience gets some."""
        for _ in range(100):
            answer = self._once(method, path, body, kind)
            if answer.code != 429:
                break
            time.sleep(0.1)
        return answer

    def _once(self, method: str, path: str, body: object, kind: str) -> Answer:
        request = urllib.request.Request(
            f"{self.server}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": f"application/{kind}", **self._headers},
        )
        try:
            with urllib.request.urlopen(request, context=self._tls, timeout=30) as answer:
                return Answer(answer.status, json.load(answer))
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, json.load(error))

    def get(self, path: str) -> Answer:
        return self.call("GET", path)

    def create(self, path: str, body: object, *, dry_run: bool = False) -> Answer:
        query = "?fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        return self.call("POST", path + query, body)

    def patch(self, path: str, body: object) -> Answer:
        return self.call("PATCH", path, body, kind="merge-patch+json")

    def token(self, namespace: str, account: str) -> str:
        """A token of a ServiceAccount."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        answer = self.create(path, {"spec": {}})
        assert answer.code == 201, answer.message
        return str(answer.body["status"]["token"])

    def kubectl(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                *kubectl_command(),
                f"--kubeconfig={self.kubeconfig}",
                f"--cache-dir={self.kubeconfig.parent / 'kubectl'}",
                *self._options,
                *arguments,
            ],
            check=check,
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=240,
        )


class SharedControlPlane:
    """A control plane that several test processes use; counted, so that the last one ends it."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._users = state / "users"

    @property
    def api(self) -> Api:
        return Api(self._state / "dev/shared/kubeconfig")

    def join(self) -> None:
        with self._locked():
            count = self._count()
            if count == 0:
                pequod("dev", "up", "--detach", "--crds", "--name=shared", state=self._state)
            self._users.write_text(str(count + 1))

    def leave(self) -> None:
        with self._locked():
            count = self._count() - 1
            self._users.write_text(str(count))
            if count == 0:
                pequod("dev", "down", "--name=shared", state=self._state)

    def _count(self) -> int:
        return int(self._users.read_text()) if self._users.exists() else 0

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._state.mkdir(exist_ok=True)
        with (self._state / "tests.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
