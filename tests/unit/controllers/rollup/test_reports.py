"""What a chain says of itself: the phase, and what is known of each program."""

from datetime import UTC, datetime, timedelta

import pytest

import chains
from pequod.api import reasons
from pequod.api.graph import NodeStatus as GraphNodeStatus
from pequod.api.meta import Condition, ObjectMeta
from pequod.api.platform import API_VERSION as GRAPH_VERSION
from pequod.api.platform import ResourceGraph, ResourceGraphSpec, ResourceGraphStatus
from pequod.api.rollup import (
    API_VERSION,
    BatcherStatus,
    ComponentStatus,
    GethStatus,
    NodeStatus,
    OPChain,
    OPChainStatus,
    Phase,
    ProposerStatus,
)
from pequod.controllers.rollup.asking import Account, Execution
from pequod.controllers.rollup.chronicle import Chronicle, Payer
from pequod.controllers.rollup.components.chain import COMPONENTS, Component
from pequod.controllers.rollup.funds import ETHER
from pequod.controllers.rollup.judging import Case, Judgement
from pequod.controllers.rollup.progress import Heads
from pequod.controllers.rollup.reporting import Judgements, phase, report

NOW = 50_000.0
WALL = datetime(2026, 1, 1, tzinfo=UTC)
LONG_AGO = WALL - timedelta(days=1)
GOOD = Judgement(ok=True, message="runs")
STARTING = Judgement(ok=False, message="not yet", reason=reasons.STARTING)
BAD = Judgement(ok=False, message="does not answer", reason=reasons.NOT_ANSWERING)
PHASES: tuple[Phase, ...] = (
    *("Pending", "ConfigLoading", "Deploying", "Running", "Upgrading", "Error"),
)


def opchain(was: Phase = "Running", known: ComponentStatus | None = None) -> OPChain:
    return OPChain(
        api_version=API_VERSION,
        kind="OPChain",
        metadata=ObjectMeta(name="chain", namespace="rollups"),
        spec=chains.spec(),
        status=OPChainStatus(phase=was, component_status=known or ComponentStatus()),
    )


def graph(*, ready: bool = True, failed: bool = False) -> ResourceGraph:
    condition = Condition(
        type="Ready",
        status="True" if ready else "False",
        reason="Succeeded" if ready else "Progressing",
        message="",
        last_transition_time=WALL,
    )
    return ResourceGraph(
        api_version=GRAPH_VERSION,
        kind="ResourceGraph",
        metadata=ObjectMeta(name="opchain-chain", namespace="rollups", generation=1),
        spec=ResourceGraphSpec(nodes=()),
        status=ResourceGraphStatus(
            phase="Failed" if failed else "Ready" if ready else "Executing",
            node_status={str(one): GraphNodeStatus(phase="Ready") for one in COMPONENTS},
            conditions=(condition,),
            observed_generation=1,
        ),
    )


def moving(unsafe: int = 100) -> Chronicle:
    """A chain that makes blocks."""
    made = Chronicle()
    for ago, height in ((10.0, unsafe - 5), (0.0, unsafe)):
        made.saw_execution(Execution(height, syncing=False), NOW - ago)
        made.saw_heads(Heads(unsafe=height, safe=90, finalized=80), NOW - ago)
    return made


def standing() -> Chronicle:
    """A chain that answers, and makes no blocks."""
    made = Chronicle()
    for ago in (3600.0, 0.0):
        made.saw_execution(Execution(100, syncing=False), NOW - ago)
        made.saw_heads(Heads(unsafe=100, safe=90, finalized=80), NOW - ago)
    return made


def silent(since: float = 3600.0) -> Chronicle:
    """A chain that has not answered since this operator was started."""
    made = Chronicle()
    made.geth.failed("chain-geth cannot be reached", NOW - since)
    made.node.failed("chain-node cannot be reached", NOW - since)
    return made


def case(seen: Chronicle, found: ResourceGraph | None = None) -> Case:
    return Case(
        name="chain",
        graph=graph() if found is None else found,
        seen=seen,
        now=NOW,
        genesis_hash="",
        block_window=60.0,
        stall_window=600.0,
        funds_hours=24,
        was_stalled=False,
    )


def judged(
    *bad: Component, of: tuple[Component, ...] = COMPONENTS, word: Judgement = BAD
) -> Judgements:
    return {one: word if one in bad else GOOD for one in of}


def known(unsafe: int | None = 100) -> ComponentStatus:
    """What was told of the chain before."""
    return ComponentStatus(node=NodeStatus(unsafe_height=unsafe))


@pytest.mark.parametrize("was", PHASES)
def test_a_chain_that_makes_blocks_runs(was: Phase) -> None:
    found = phase(opchain(was), case(moving()), judged(), upgrading=False)
    assert found == "Running"


@pytest.mark.parametrize("was", ["Deploying", "Running", "Error"])
def test_a_chain_runs_whatever_its_senders_do(was: Phase) -> None:
    bad = judged("batcher", "proposer")
    assert phase(opchain(was), case(moving()), bad, upgrading=False) == "Running"


@pytest.mark.parametrize("was", PHASES)
def test_a_chain_that_is_upgraded_says_so(was: Phase) -> None:
    for seen in (moving(), standing(), silent(), Chronicle()):
        found = phase(opchain(was, known()), case(seen), judged("geth"), upgrading=True)
        assert found == "Upgrading"


@pytest.mark.parametrize(
    ("bad", "ready", "wanted"),
    [
        ((), True, "Running"),
        (("batcher",), True, "Running"),
        ((), False, "Upgrading"),
        (("node",), True, "Upgrading"),
        (("geth", "node"), False, "Upgrading"),
    ],
)
def test_an_upgrade_is_over_when_everything_runs(
    bad: tuple[Component, ...], wanted: Phase, *, ready: bool
) -> None:
    found = case(moving(), graph(ready=ready))
    assert phase(opchain("Upgrading"), found, judged(*bad), upgrading=False) == wanted


@pytest.mark.parametrize("was", ["Pending", "ConfigLoading", "Deploying", "Error"])
def test_a_chain_that_nobody_has_seen_yet_is_being_deployed(was: Phase) -> None:
    bad = judged(*COMPONENTS, word=STARTING)
    for seen in (Chronicle(), silent(10)):
        assert phase(opchain(was), case(seen), bad, upgrading=False) == "Deploying"


def test_a_chain_that_cannot_be_deployed_is_in_error() -> None:
    found = case(Chronicle(), graph(ready=False, failed=True))
    bad = judged(*COMPONENTS)
    assert phase(opchain("Deploying"), found, bad, upgrading=False) == "Error"


def test_a_chain_that_has_not_made_its_first_block_is_being_deployed() -> None:
    seen = Chronicle()
    seen.saw_heads(Heads(unsafe=0, safe=0, finalized=0), NOW - 5)
    bad = judged("node", word=STARTING)
    assert phase(opchain("Deploying"), case(seen), bad, upgrading=False) == "Deploying"


def test_a_chain_that_makes_no_more_blocks_is_in_error() -> None:
    found = phase(opchain("Running", known()), case(standing()), judged("node"), upgrading=False)
    assert found == "Error"


def test_a_chain_that_answers_for_an_hour_without_a_block_is_in_error() -> None:
    found = phase(opchain("Deploying"), case(standing()), judged("node"), upgrading=False)
    assert found == "Error"


def test_a_chain_that_makes_blocks_runs_although_a_pod_is_not_ready() -> None:
    found = phase(opchain("Running", known()), case(moving()), judged("geth"), upgrading=False)
    assert found == "Running"


def test_an_operator_that_was_started_anew_believes_what_it_finds() -> None:
    bad = judged("geth", "node", word=STARTING)
    for seen in (Chronicle(), silent(10)):
        found = phase(opchain("Running", known()), case(seen), bad, upgrading=False)
        assert found == "Running"


def test_an_operator_that_was_started_anew_believes_a_chain_without_op_node_as_well() -> None:
    bad = judged("geth", of=("geth",), word=STARTING)
    assert phase(opchain("Running"), case(Chronicle()), bad, upgrading=False) == "Running"


def test_an_operator_that_was_started_anew_believes_it_only_for_a_while() -> None:
    """The chain died while there was no operator, and does not answer."""
    bad = judged("geth", "node")
    found = phase(opchain("Running", known()), case(silent()), bad, upgrading=False)
    assert found == "Error"


@pytest.mark.parametrize("of", [("geth",), ("batcher",), ("batcher", "proposer")])
def test_a_chain_without_op_node_runs_while_its_programs_do(of: tuple[Component, ...]) -> None:
    seen = Chronicle()
    assert phase(opchain("Deploying"), case(seen), judged(of=of), upgrading=False) == "Running"


@pytest.mark.parametrize("of", [("geth",), ("batcher",), ("batcher", "proposer")])
def test_a_chain_without_op_node_does_not_run_without_its_programs(
    of: tuple[Component, ...],
) -> None:
    found = case(silent(), graph(ready=False, failed=True))
    bad = judged(*of, of=of)
    assert phase(opchain("Running"), found, bad, upgrading=False) == "Error"


def test_what_is_known_of_each_program_is_reported() -> None:
    chain, seen = opchain(), moving()
    seen.payers["batcher"] = paid = Payer()
    paid.saw(Account(3 * ETHER, 7), 1, NOW - 60, LONG_AGO)
    paid.saw(Account(2 * ETHER, 8), 1, NOW, WALL)
    report(chain, judged("proposer"), seen)
    assert chain.status.component_status == ComponentStatus(
        geth=GethStatus(ready=True, sync_height=100, message="runs"),
        node=NodeStatus(
            ready=True, safe_height=90, unsafe_height=100, finalized_height=80, message="runs"
        ),
        batcher=BatcherStatus(
            ready=True, last_batch_submission=WALL, balance="2 ETH", message="runs"
        ),
        proposer=ProposerStatus(ready=False, message="does not answer"),
    )


def test_what_is_not_there_is_not_reported() -> None:
    before = ComponentStatus(geth=GethStatus(), proposer=ProposerStatus(balance="1 ETH"))
    chain = opchain(known=before)
    report(chain, judged(of=("geth", "node", "batcher")), moving())
    assert chain.status.component_status.geth is not None
    assert chain.status.component_status.proposer is None


def test_what_was_known_before_an_operator_was_started_stays() -> None:
    before = ComponentStatus(
        geth=GethStatus(ready=True, sync_height=99),
        node=NodeStatus(ready=True, safe_height=70, unsafe_height=99, finalized_height=60),
        batcher=BatcherStatus(ready=True, last_batch_submission=LONG_AGO, balance="5 ETH"),
        proposer=ProposerStatus(ready=True, last_proposal=LONG_AGO, balance="6 ETH"),
    )
    chain = opchain(known=before)
    report(chain, judged(*COMPONENTS), Chronicle())
    assert chain.status.component_status == ComponentStatus(
        geth=GethStatus(sync_height=99, message="does not answer"),
        node=NodeStatus(
            safe_height=70, unsafe_height=99, finalized_height=60, message="does not answer"
        ),
        batcher=BatcherStatus(
            last_batch_submission=LONG_AGO, balance="5 ETH", message="does not answer"
        ),
        proposer=ProposerStatus(last_proposal=LONG_AGO, balance="6 ETH", message="does not answer"),
    )


def test_heads_that_went_back_are_reported_where_they_are() -> None:
    chain = opchain(known=known(unsafe=500))
    report(chain, judged(), moving(unsafe=100))
    node = chain.status.component_status.node
    assert node is not None
    assert node.unsafe_height == 100


def test_an_account_that_is_empty_is_reported_as_such() -> None:
    chain = opchain(known=ComponentStatus(batcher=BatcherStatus(balance="5 ETH")))
    seen = Chronicle()
    seen.payers["batcher"] = Payer()
    seen.payers["batcher"].saw(Account(0, 7), 1, NOW, WALL)
    report(chain, judged(), seen)
    batcher = chain.status.component_status.batcher
    assert batcher is not None
    assert batcher.balance == "0 ETH"
    assert batcher.last_batch_submission is None, "nobody saw it send"
