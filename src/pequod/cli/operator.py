"""`pequod operator`: the controllers, against any cluster."""

import asyncio
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pequod.cli import terminal

if TYPE_CHECKING:
    from pequod.controllers.platform.policies import Sets
    from pequod.controllers.rollup.wiring import RollupSettings
    from pequod.runtime.health import Address
    from pequod.runtime.leader import Timing
    from pequod.settings import Settings
    from pequod.sources.library import LibraryOptions
    from pequod.sources.resolver import Reference

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "json", "console"]
IdentityMode = Literal["confined", "impersonate", "trusted"]

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
    identity: Annotated[
        IdentityMode,
        typer.Option(
            envvar="PEQUOD_IDENTITY",
            help="Who acts for graphs that name no serviceAccountName. confined: the operator, "
            "within the graph's namespace. impersonate: --default-service-account of the namespace."
            " trusted: the operator, without limits.",
        ),
    ] = "confined",
    default_service_account: Annotated[
        str,
        typer.Option(
            envvar="PEQUOD_DEFAULT_SERVICE_ACCOUNT",
            help="The account of each namespace that --identity impersonate acts as.",
        ),
    ] = "default",
    max_graphs_per_namespace: Annotated[
        int,
        typer.Option(
            min=0,
            envvar="PEQUOD_MAX_GRAPHS_PER_NAMESPACE",
            help="How many ResourceGraphs a namespace may have; 0 is no limit.",
        ),
    ] = 0,
    max_objects_per_namespace: Annotated[
        int,
        typer.Option(
            min=0,
            envvar="PEQUOD_MAX_OBJECTS_PER_NAMESPACE",
            help="How many objects the ResourceGraphs of a namespace may ask for; 0 is no limit.",
        ),
    ] = 0,
    abandon_after: Annotated[
        str,
        typer.Option(
            envvar="PEQUOD_ABANDON_AFTER",
            help="How long to try to delete the objects of a deleted ResourceGraph that may not be "
            "deleted, before they are left behind.",
        ),
    ] = "10m",
    evaluator: Annotated[
        Path | None,
        typer.Option(
            envvar="PEQUOD_EVALUATOR",
            help="The program that evaluates modules and CEL; built into the cache when absent.",
        ),
    ] = None,
    policies: Annotated[
        str,
        typer.Option(
            envvar="PEQUOD_POLICIES",
            metavar="MODULE",
            help="The policies that Transforms are judged by: embedded:NAME, oci://… or "
            "git+https://…?ref=…&path=…, or off.",
        ),
    ] = "embedded:policy",
    policy_set: Annotated[
        list[str] | None,
        typer.Option(
            envvar="PEQUOD_POLICY_SETS",
            metavar="NAME=MODULE",
            help="Policies for namespaces with the label pequod.io/policies=NAME instead; "
            "repeatable.",
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            envvar="PEQUOD_STORE",
            help="The folder that modules and results are kept in; in the cache when absent.",
        ),
    ] = None,
    allow_local_sources: Annotated[
        bool,
        typer.Option(
            "--allow-local-sources",
            envvar="PEQUOD_ALLOW_LOCAL_SOURCES",
            help="Let modules come from this machine (loopback). For development.",
        ),
    ] = False,
    chain_rpc: Annotated[
        str,
        typer.Option(
            envvar="PEQUOD_CHAIN_RPC",
            metavar="TEMPLATE",
            help="Where the programs of OPChains are asked: a URL with {service} or {address}, "
            "{namespace} and {port}. {address} is the Service's own, for an operator outside.",
        ),
    ] = "http://{service}.{namespace}.svc:{port}",
    chain_interval: Annotated[
        str,
        typer.Option(
            envvar="PEQUOD_CHAIN_INTERVAL",
            metavar="DURATION",
            help="How often each OPChain is asked for its blocks, for example 10s.",
        ),
    ] = "10s",
    allow_local_chains: Annotated[
        bool,
        typer.Option(
            "--allow-local-chains",
            envvar="PEQUOD_ALLOW_LOCAL_CHAINS",
            help="Let L1 and the programs of OPChains be on this machine (loopback). "
            "For development.",
        ),
    ] = False,
    plain_http: Annotated[
        list[str] | None,
        typer.Option(
            envvar="PEQUOD_PLAIN_HTTP",
            metavar="HOST:PORT",
            help="A registry that is spoken to without TLS; repeatable.",
        ),
    ] = None,
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
    from pequod.controllers.platform.identity import IdentityRules
    from pequod.controllers.platform.limits import NamespaceLimits
    from pequod.settings import Settings

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
        identity=IdentityRules(mode=identity, default_account=default_service_account),
        limits=NamespaceLimits(graphs=max_graphs_per_namespace, objects=max_objects_per_namespace),
        abandon_after=_period("--abandon-after", abandon_after),
        evaluator=evaluator or _built_evaluator(),
        library=_library(store, allow_local=allow_local_sources, plain_http=plain_http or []),
        policies=_policies(policies, policy_set or []),
        rollup=_rollup(
            chain_rpc,
            _period("--chain-interval", chain_interval),
            allow_local=allow_local_chains,
        ),
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


def _built_evaluator() -> Path | None:
    """The evaluator of the cache, built into it if need be; None where that is not possible."""
    from pequod.dev.failure import DevError
    from pequod.dev.programs import find_evaluator

    async def find() -> Path:
        with terminal.build_progress() as report:
            return await find_evaluator(report)

    try:
        return asyncio.run(find())
    except DevError as error:
        terminal.errors.print(f"CEL cannot be evaluated: {error.problem}. {error.next_step}")
        return None


def _library(store: Path | None, *, allow_local: bool, plain_http: "list[str]") -> "LibraryOptions":
    from importlib.metadata import version

    from pequod.dev.places import cache_dir, shipped
    from pequod.kube.addresses import AddressRule
    from pequod.sources.library import LibraryOptions

    with terminal.explained():
        return LibraryOptions(
            root=store or cache_dir() / "operator",
            modules=shipped("modules"),
            version=version("pequod"),
            rule=AddressRule(allow_local=allow_local),
            plain_http=frozenset(plain_http),
        )


def _rollup(rpc: str, interval: float, *, allow_local: bool) -> "RollupSettings":
    from pequod.controllers.rollup.observers import Pace
    from pequod.controllers.rollup.wiring import RollupSettings

    try:
        made = rpc.format(service="s", namespace="n", port=1, address="a")
    except (KeyError, IndexError, ValueError):
        made = ""
    if not made.startswith(("http://", "https://")):
        terminal.fail(
            f"--chain-rpc: {rpc} is not a template of a URL",
            "Give one such as http://{service}.{namespace}.svc:{port}.",
        )
    return RollupSettings(rpc=rpc, allow_local=allow_local, pace=Pace.every(interval))


def _policies(text: str, sets: "list[str]") -> "Sets":
    from pequod.controllers.platform.policies import DEFAULT

    found = {DEFAULT: _policy("--policies", text)}
    for one in sets:
        name, equals, module = one.partition("=")
        if not name or not equals:
            terminal.fail(f"--policy-set: {one} names no set", "Give NAME=MODULE.")
        found[name] = _policy("--policy-set", module)
    return found


def _policy(option: str, text: str) -> "Reference | None":
    from pequod.cli.moduleplace import place_of

    if text == OFF:
        return None
    reference = place_of(text).reference()
    if reference is None:
        terminal.fail(
            f"{option}: {text} is a folder, which other replicas do not have",
            f"Give embedded:NAME, oci://…, git+https://…?ref=…&path=…, or {OFF}.",
        )
    return reference


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
