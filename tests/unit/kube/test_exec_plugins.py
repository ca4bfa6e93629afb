"""Exec plugins: what they are told, what is believed of them, and how they fail."""

import asyncio
import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pequod.dev.pki import Authority
from pequod.kube.auth import ClientCertificate, Endpoint, Identity, bearer
from pequod.kube.errors import CredentialsError
from pequod.kube.execplugin import ExecConfig, ExecPlugin, Variable, cluster_info

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
SECRET = "s3cr3t-t0ken"

COUNTING = """
import json, os, sys, time
runs = open(sys.argv[1], "a+")
runs.write("x")
runs.flush()
runs.seek(0)
count = len(runs.read())
time.sleep(float(sys.argv[2]))
"""
"""Counts its runs in the file that is its first argument, and takes its time."""


def answer(status: object, version: str = V1) -> str:
    document = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    return f"print({json.dumps(document)!r})"


class Workshop:
    """Makes plugins out of scripts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = folder / "runs"

    @property
    def count(self) -> int:
        return len(self.runs.read_text()) if self.runs.exists() else 0

    def plugin(self, code: str, *, patience: float = 60.0, **settings: Any) -> ExecPlugin:  # noqa: ANN401 -- fields of several types
        script = self.folder / "plugin.py"
        script.write_text(code)
        given = {"api_version": V1, "interactive_mode": "Never", **settings}
        config = ExecConfig(
            command=sys.executable, args=("-I", "-S", str(script), str(self.runs), "0"), **given
        )
        return ExecPlugin(config, where="here", folder=self.folder, patience=patience)

    def counting(self, *, expires: datetime | None = None) -> ExecPlugin:
        end = f", 'expirationTimestamp': {expires.isoformat()!r}" if expires else ""
        status = f"{{'token': f'token-{{count}}'{end}}}"
        envelope = f"{{'apiVersion': {V1!r}, 'kind': 'ExecCredential', 'status': {status}}}"
        return self.plugin(f"{COUNTING}\nprint(json.dumps({envelope}))")


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


async def refusal(plugin: ExecPlugin) -> str:
    with pytest.raises(CredentialsError) as caught:
        await plugin.current()
    message = str(caught.value)
    assert message.startswith("here: the plugin ")
    assert SECRET not in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_a_token_becomes_a_header(workshop: Workshop, version: str) -> None:
    plugin = workshop.plugin(answer({"token": SECRET}, version), api_version=version)
    assert await plugin.current() == Identity(authorization=bearer(SECRET))


async def test_a_certificate_and_its_key_are_shown(workshop: Workshop) -> None:
    pair = Authority().client("ann")
    status = {
        "clientCertificateData": pair.certificate.decode(),
        "clientKeyData": pair.key.decode(),
    }
    shown = await workshop.plugin(answer(status)).current()
    assert shown == Identity(certificate=ClientCertificate(pair.certificate, pair.key))


async def test_the_plugin_is_told_what_the_protocol_says(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INHERITED", "yes")
    script = workshop.folder / "tell.py"
    script.write_text(
        "import json, os, sys\n"
        "told = {key: os.environ.get(key) for key in ('INHERITED', 'ADDED')}\n"
        "told['info'] = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "told['args'] = sys.argv[1:]\n"
        "told['stdin'] = sys.stdin.read()\n"
        "print(json.dumps({'apiVersion': told['info']['apiVersion'], 'kind': 'ExecCredential',\n"
        "                  'status': {'token': json.dumps(told)}}))\n"
    )
    config = ExecConfig(
        api_version=V1,
        command=sys.executable,
        args=("-I", str(script), "a b", "$HOME"),
        env=(Variable("ADDED", "too"),),
        interactive_mode="IfAvailable",
        provide_cluster_info=True,
    )
    endpoint = Endpoint(
        server="https://one.example", authority=b"ca", server_name="one", verified=False
    )
    cluster = cluster_info(endpoint, {"audience": "us"})
    plugin = ExecPlugin(config, where="here", folder=workshop.folder, cluster=cluster)
    header = (await plugin.current()).authorization or ""
    assert json.loads(header.removeprefix("Bearer ")) == {
        "INHERITED": "yes",
        "ADDED": "too",
        "args": ["a b", "$HOME"],
        "stdin": "",
        "info": {
            "apiVersion": V1,
            "kind": "ExecCredential",
            "spec": {
                "interactive": False,
                "cluster": {
                    "server": "https://one.example",
                    "certificate-authority-data": "Y2E=",
                    "tls-server-name": "one",
                    "insecure-skip-tls-verify": True,
                    "config": {"audience": "us"},
                },
            },
        },
    }


async def test_a_credential_without_an_end_is_used_until_it_is_rejected(
    workshop: Workshop,
) -> None:
    plugin = workshop.counting()
    assert [(await plugin.current()).authorization for _ in range(3)] == ["Bearer token-1"] * 3
    plugin.rejected()
    assert (await plugin.current()).authorization == "Bearer token-2"
    assert workshop.count == 2


@pytest.mark.parametrize(("seconds", "runs"), [(3600, 1), (5, 2), (-5, 2)])
async def test_a_credential_is_used_until_shortly_before_its_end(
    workshop: Workshop, seconds: int, runs: int
) -> None:
    plugin = workshop.counting(expires=datetime.now(UTC) + timedelta(seconds=seconds))
    await plugin.current()
    await plugin.current()
    assert workshop.count == runs


async def test_a_credential_from_the_beginning_of_time_has_ended(workshop: Workshop) -> None:
    plugin = workshop.counting(expires=datetime.min.replace(tzinfo=UTC))
    await plugin.current()
    await plugin.current()
    assert workshop.count == 2


async def test_those_who_ask_at_the_same_time_get_the_answer_of_one_run(
    workshop: Workshop,
) -> None:
    plugin = workshop.counting()
    answers = await asyncio.gather(*(plugin.current() for _ in range(20)))
    assert {answer.authorization for answer in answers} == {"Bearer token-1"}
    assert workshop.count == 1


async def test_those_who_ask_at_the_same_time_get_the_failure_of_one_run(
    workshop: Workshop,
) -> None:
    plugin = workshop.plugin(f"{COUNTING}\nsys.exit(3)")
    failures = await asyncio.gather(*(plugin.current() for _ in range(20)), return_exceptions=True)
    assert all(isinstance(failure, CredentialsError) for failure in failures)
    assert workshop.count == 1
    await refusal(plugin)
    assert workshop.count == 2


async def test_one_who_stops_waiting_does_not_take_the_answer_from_the_others(
    workshop: Workshop,
) -> None:
    plugin = workshop.counting()
    first = asyncio.create_task(plugin.current())
    second = asyncio.create_task(plugin.current())
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).authorization == "Bearer token-1"
    assert first.cancelled()


async def test_a_failure_that_nobody_waits_for_any_more_is_not_reported_as_forgotten(
    workshop: Workshop,
) -> None:
    plugin = workshop.plugin("raise SystemExit(1)")
    waiting = asyncio.create_task(plugin.current())
    await asyncio.sleep(0)
    waiting.cancel()
    running = plugin._running
    assert running is not None
    await asyncio.wait([running])
    assert plugin._running is None


async def test_a_plugin_that_hangs_is_ended_with_all_that_it_started(workshop: Workshop) -> None:
    child = workshop.folder / "child"
    plugin = workshop.plugin(
        "import os, time\n"
        "child = os.fork()\n"
        f"open({str(child)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "time.sleep(300)\n",
        patience=5.0,
    )
    started = time.monotonic()
    assert "did not end within 5 seconds" in await refusal(plugin)
    assert time.monotonic() - started < 60
    pids = [int(line) for line in child.read_text().split()]
    assert len(pids) == 2
    assert not any(_runs(pid) for pid in pids)


def _runs(pid: int) -> bool:
    """Whether a process is there, and not only its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_a_plugin_is_ended_when_we_are(workshop: Workshop) -> None:
    pidfile = workshop.folder / "pid"
    plugin = workshop.plugin(
        f"import os, time\nopen({str(pidfile)!r}, 'w').write(str(os.getpid()))\ntime.sleep(300)\n"
    )
    waiting = asyncio.create_task(plugin.current())
    while not pidfile.exists() or not pidfile.read_text():
        await asyncio.sleep(0.01)
    running = plugin._running
    assert running is not None
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not _runs(int(pidfile.read_text()))


async def test_a_plugin_that_does_not_stop_printing_is_ended(workshop: Workshop) -> None:
    plugin = workshop.plugin("while True: print('x' * 65536)")
    assert "printed more than 1 MiB" in await refusal(plugin)


async def test_a_plugin_that_fails_is_quoted_by_its_last_line_only(workshop: Workshop) -> None:
    plugin = workshop.plugin(
        f"import sys\nprint({SECRET!r})\n"
        f"sys.stderr.write('{SECRET}\\n' * 5000 + 'log in \\x1b[31mfirst' + 'x' * 400 + '\\n')\n"
        "sys.exit(7)"
    )
    message = await refusal(plugin)
    assert "ended with code 7: log in \\x1b[31mfirst" in message
    assert len(message) < 500
    assert "ended with code 1: no output" in await refusal(workshop.plugin("raise SystemExit(1)"))


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (f"print({SECRET!r})", "did not print an ExecCredential: not JSON"),
        ("import os; os.write(1, b'\"\\xff\"')", "did not print an ExecCredential"),
        ("print('{\"kind\": 1}')", "did not print an ExecCredential: Expected `str`, got `int`"),
        (f'print(\'{{"apiVersion": "{V1}", "kind": "Pod"}}\')', "the kind is another one"),
        (answer({"token": SECRET}, V1BETA1), f"did not answer in {V1}"),
        (answer(None), "without a status"),
        (answer({}), "neither a token nor a client certificate"),
        (answer({"clientKeyData": SECRET}), "only one of a client certificate and its key"),
        (answer({"token": f"{SECRET}\n"}), "a token with line breaks"),
        (answer({"token": SECRET, "expirationTimestamp": "soon"}), "$.status.expiration"),
        (answer({"token": SECRET, "expirationTimestamp": "2030-01-01T00:00:00"}), "timezone"),
    ],
)
async def test_an_answer_that_makes_no_sense_is_refused_without_quoting_it(
    workshop: Workshop, code: str, problem: str
) -> None:
    assert problem in await refusal(workshop.plugin(code))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"api_version": "client.authentication.k8s.io/v1alpha1"}, f"use {V1}"),
        ({"interactive_mode": None}, "has no interactiveMode"),
        ({"interactive_mode": "Sometimes"}, "unknown interactiveMode"),
        ({"interactive_mode": "Always"}, "wants to talk to a person"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(
    workshop: Workshop, settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(CredentialsError, match=problem):
        workshop.plugin("", **settings)


def test_a_plugin_needs_a_command(tmp_path: Path) -> None:
    config = ExecConfig(api_version=V1BETA1, command="")
    with pytest.raises(CredentialsError, match="has no command"):
        ExecPlugin(config, where="here", folder=tmp_path)


@pytest.mark.parametrize(
    ("hint", "step"), [("run: brew install it\n", "run: brew install it"), (None, "install it, or")]
)
async def test_a_missing_plugin_comes_with_the_hint_how_to_install_it(
    tmp_path: Path, hint: str | None, step: str
) -> None:
    config = ExecConfig(api_version=V1BETA1, command="no-such-plugin", install_hint=hint)
    message = await refusal(ExecPlugin(config, where="here", folder=tmp_path))
    assert f"cannot be started: No such file or directory; {step}" in message


async def test_a_command_with_a_slash_counts_from_the_folder_of_the_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "bin" / "plugin"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\n{answer({'token': SECRET}, V1BETA1)}\n")
    script.chmod(0o700)
    monkeypatch.chdir(os.sep)
    config = ExecConfig(api_version=V1BETA1, command="bin/plugin")
    plugin = ExecPlugin(config, where="here", folder=tmp_path)
    assert (await plugin.current()).authorization == bearer(SECRET)


@pytest.mark.parametrize("command", ["./not-a-program", "pl\0ugin"])
async def test_a_command_that_cannot_be_started_is_named(tmp_path: Path, command: str) -> None:
    script = tmp_path / "not-a-program"
    script.write_bytes(b"\x7fELF")
    script.chmod(0o700)
    config = ExecConfig(api_version=V1BETA1, command=command)
    message = await refusal(ExecPlugin(config, where="here", folder=tmp_path))
    assert "cannot be started" in message
