"""`pequod operator`: the controllers, against any cluster."""

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pequod.cli import terminal

if TYPE_CHECKING:
    from pequod.operator import Settings
    from pequod.runtime.health import Address
    from pequod.runtime.leader import Timing

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "console"]

OFF = "off"


def operator(  # noqa: PLR0913 -- a signature is the command line
    *,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            envvar="PEQUOD_KUBECONFIG",
            help="How to reach the cluster. Without it: $KUBECONFIG, then the pod's own account, "
            "then ~/.kube/config.",
        ),
    ] = None,
    context: Annotated[
        str | None,
        typer.Option(envvar="PEQUOD_CONTEXT", help="Context of the kubeconfig, if not its own."),
    ] = None,
    namespace: Annotated[
        str,
        typer.Option(
            envvar=["PEQUOD_NAMESPACE", "POD_NAMESPACE"],
            help="The operator's own namespace: its Lease is there.",
        ),
    ] = "pequod-system",
    leader_election: Annotated[
        bool,
        typer.Option(
            envvar="PEQUOD_LEADER_ELECTION",
            help="Of several replicas only one acts. Without it there must be only one.",
        ),
    ] = True,
    lease_duration: Annotated[
        str,
        typer.Option(
            envvar="PEQUOD_LEASE_DURATION",
            help="How long a leader that is silent is waited for before another one leads.",
        ),
    ] = "15s",
    lease_renew_deadline: Annotated[
        str,
        typer.Option(
            envvar="PEQUOD_LEASE_RENEW_DEADLINE",
            help="How long a leader that cannot renew its Lease goes on; less than the duration.",
        ),
    ] = "10s",
    lease_retry_period: Annotated[
        str,
        typer.Option(
            envvar="PEQUOD_LEASE_RETRY_PERIOD",
            help="How often the Lease is renewed, or asked for; less than the deadline.",
        ),
    ] = "2s",
    health_address: Annotated[
        str,
        typer.Option(
            envvar="PEQUOD_HEALTH_ADDRESS",
            help="Where /healthz and /readyz are served: host:port, :port, or off.",
        ),
    ] = ":8081",
    metrics_address: Annotated[
        str,
        typer.Option(
            envvar="PEQUOD_METRICS_ADDRESS",
            help="Where /metrics is served: host:port, :port, or off.",
        ),
    ] = "127.0.0.1:8080",
    cluster_probe_interval: Annotated[
        str,
        typer.Option(
            envvar="PEQUOD_CLUSTER_PROBE_INTERVAL",
            help="How often each Cluster is asked how it is, for example 60s or 5m.",
        ),
    ] = "60s",
    allow_local_clusters: Annotated[
        bool,
        typer.Option(
            "--allow-local-clusters",
            envvar="PEQUOD_ALLOW_LOCAL_CLUSTERS",
            help="Let kubeconfigs of Clusters point to this machine (loopback). For development.",
        ),
    ] = False,
    log_level: Annotated[
        LogLevel, typer.Option(envvar="PEQUOD_LOG_LEVEL", help="The least that is worth a line.")
    ] = "info",
    log_format: Annotated[
        LogFormat,
        typer.Option(
            envvar="PEQUOD_LOG_FORMAT",
            help="json for machines, console for people; auto looks where the log goes.",
        ),
    ] = "auto",
) -> None:
    """Run the controllers against a cluster until SIGTERM or Ctrl-C.

    Every option can be set by the environment variable shown beside it.
    """
    from pequod.base import logs
    from pequod.operator import Settings

    settings = Settings(
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        leader_election=leader_election,
        timing=_timing(lease_duration, lease_renew_deadline, lease_retry_period),
        health=_address("--health-address", health_address),
        metrics=_address("--metrics-address", metrics_address),
        probe_interval=_period("--cluster-probe-interval", cluster_probe_interval),
        allow_local_clusters=allow_local_clusters,
    )
    logs.set_up(level=log_level, style=log_format)
    with terminal.explained():
        asyncio.run(_run(settings))


async def _run(settings: "Settings") -> None:
    """Run until a signal; what a person can mend ends as a sentence."""
    from pequod.kube.errors import KubeError
    from pequod.operator import operate
    from pequod.runtime.health import PortTakenError

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        await operate(settings, stop)
    except KubeError as error:
        terminal.fail(
            f"the operator cannot work with the cluster: {error}",
            "Check --kubeconfig and --context, and that the cluster answers.",
        )
    except PortTakenError as error:
        terminal.fail(
            f"the operator cannot listen on {error}: another program does, or it may not",
            "Choose another --health-address or --metrics-address, or `off`.",
        )


def _address(option: str, text: str) -> "Address | None":
    from pequod.runtime.health import Address

    if text == OFF:
        return None
    try:
        return Address.parse(text)
    except ValueError as error:
        terminal.fail(f"{option}: {error}", f"Give host:port, :port or {OFF}.")


def _timing(duration: str, deadline: str, retry: str) -> "Timing":
    from pequod.runtime.leader import Timing

    try:
        return Timing(
            lease=_period("--lease-duration", duration),
            renew=_period("--lease-renew-deadline", deadline),
            retry=_period("--lease-retry-period", retry, least=0.1),
        )
    except ValueError:
        terminal.fail(
            f"the times of the Lease do not fit: {duration}, {deadline}, {retry}",
            "--lease-duration must be longer than --lease-renew-deadline, and that longer than "
            "--lease-retry-period.",
        )


def _period(option: str, text: str, *, least: float = 1.0) -> float:
    from pequod.base.durations import seconds, words

    try:
        period = seconds(text)
    except ValueError as error:
        terminal.fail(f"{option}: {error}", "Give a duration such as 60s or 5m.")
    if period < least:
        terminal.fail(f"{option} is {text}, which is too short", f"Give at least {words(least)}.")
    return period
