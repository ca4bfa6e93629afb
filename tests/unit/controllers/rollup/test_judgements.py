"""What is said of each program: by what was seen of it, and when."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from pequod.api import reasons
from pequod.api.graph import NodeStatus
from pequod.api.meta import ObjectMeta
from pequod.api.platform import API_VERSION, ResourceGraph, ResourceGraphSpec, ResourceGraphStatus
from pequod.api.reasons import Reason
from pequod.controllers.rollup.asking import Account, Execution
from pequod.controllers.rollup.chronicle import Chronicle, Payer
from pequod.controllers.rollup.components.chain import COMPONENTS
from pequod.controllers.rollup.components.senders import SENDERS, Sender
from pequod.controllers.rollup.funds import ETHER
from pequod.controllers.rollup.judging import (
    PATIENCE,
    Case,
    Judgement,
    heads,
    is_ready,
    judge_geth,
    judge_node,
    judge_sender,
)
from pequod.controllers.rollup.progress import Heads

NOW = 50_000.0
WALL = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW, STALL = 60.0, 600.0
HASH, OTHER_HASH = f"0x{'ab' * 32}", f"0x{'cd' * 32}"


def ready() -> dict[str, NodeStatus]:
    return {str(one): NodeStatus(phase="Ready") for one in COMPONENTS}


def graph(
    nodes: Mapping[str, NodeStatus] | None = None, *, generation: int = 3, observed: int = 3
) -> ResourceGraph:
    known = ready() if nodes is None else dict(nodes)
    return ResourceGraph(
        api_version=API_VERSION,
        kind="ResourceGraph",
        metadata=ObjectMeta(name="opchain-chain", namespace="rollups", generation=generation),
        spec=ResourceGraphSpec(nodes=()),
        status=ResourceGraphStatus(node_status=known, observed_generation=observed),
    )


def with_node(component: str, status: NodeStatus) -> ResourceGraph:
    """A graph in which one program is not as it should be."""
    return graph(ready() | {component: status})


def seen(*looks: tuple[float, int, int]) -> Chronicle:
    """A chain that was looked at some seconds ago: when, and where the heads were."""
    made = Chronicle()
    for ago, unsafe, safe in looks:
        made.saw_execution(Execution(unsafe, syncing=False), NOW - ago)
        made.saw_heads(Heads(unsafe=unsafe, safe=safe, finalized=0), NOW - ago)
    return made


def lively() -> Chronicle:
    return seen((30, 90, 80), (10, 100, 90), (0, 105, 95))


def paying(sender: Sender, balance: int, nonce: int = 7) -> Chronicle:
    made = lively()
    made.payers[sender] = payer = Payer()
    payer.saw(Account(balance, nonce), 10**9, NOW - 10, WALL)
    return made


def case(known: Chronicle | None = None, **changes: Any) -> Case:  # noqa: ANN401 -- its fields
    fields: dict[str, Any] = {
        "name": "chain",
        "graph": graph(),
        "seen": lively() if known is None else known,
        "now": NOW,
        "genesis_hash": HASH,
        "block_window": WINDOW,
        "stall_window": STALL,
        "funds_hours": 24,
        "was_stalled": False,
    }
    return Case(**(fields | changes))


def judge_batcher(found: Case) -> Judgement:
    return judge_sender(found, "batcher", stopped=False)


def judge_proposer(found: Case) -> Judgement:
    return judge_sender(found, "proposer", stopped=False)


JUDGES: dict[str, Callable[[Case], Judgement]] = {
    "geth": judge_geth,
    "node": judge_node,
    "batcher": judge_batcher,
    "proposer": judge_proposer,
}


def refused(judged: Judgement, reason: Reason) -> str:
    """The message of a judgement that is not good, for a reason."""
    assert (judged.ok, judged.reason) == (False, reason), judged
    return judged.message


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_program_that_does_what_it_should_is_well(component: str) -> None:
    judged = JUDGES[component](case())
    assert judged.ok
    assert judged.message


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_program_whose_workload_failed_says_why(component: str) -> None:
    broken = with_node(
        component, NodeStatus(phase="Error", last_error="the image cannot be pulled")
    )
    judged = JUDGES[component](case(graph=broken))
    assert refused(judged, reasons.NODES_FAILED) == "the image cannot be pulled"


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_program_whose_workload_is_on_its_way_says_so(component: str) -> None:
    starting = with_node(
        component, NodeStatus(phase="Applied", ready_details="0 of 1 pods are ready")
    )
    judged = JUDGES[component](case(graph=starting))
    assert refused(judged, reasons.WAITING_FOR_NODES) == "0 of 1 pods are ready"


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_program_that_was_not_applied_yet_waits(component: str) -> None:
    judged = JUDGES[component](case(graph=graph({})))
    assert refused(judged, reasons.WAITING_FOR_NODES) == "waits for what comes before it"


@pytest.mark.parametrize("component", COMPONENTS)
def test_what_a_graph_said_of_its_former_spec_does_not_count(component: str) -> None:
    stale = graph(generation=4, observed=3)
    assert not is_ready(stale, "geth")
    refused(JUDGES[component](case(graph=stale)), reasons.WAITING_FOR_NODES)


@pytest.mark.parametrize("component", ["geth", "node"])
def test_a_program_that_was_never_asked_is_starting(component: str) -> None:
    message = refused(JUDGES[component](case(Chronicle())), reasons.STARTING)
    assert message == "has not been asked yet"


@pytest.mark.parametrize("component", ["geth", "node"])
def test_a_program_that_has_not_answered_yet_is_starting(component: str) -> None:
    known = Chronicle()
    getattr(known, component).failed("chain-geth cannot be reached", NOW - PATIENCE)
    message = refused(JUDGES[component](case(known)), reasons.STARTING)
    assert "chain-geth cannot be reached" in message


@pytest.mark.parametrize("component", ["geth", "node"])
def test_a_program_that_never_answers_is_told(component: str) -> None:
    known = Chronicle()
    for ago in (PATIENCE + 1, 20, 0):
        getattr(known, component).failed("chain-geth cannot be reached", NOW - ago)
    message = refused(JUDGES[component](case(known)), reasons.NOT_ANSWERING)
    assert message == "chain-geth cannot be reached"


@pytest.mark.parametrize("component", ["geth", "node"])
def test_a_short_silence_is_forgiven(component: str) -> None:
    known = lively()
    getattr(known, component).failed("it did not answer", NOW - PATIENCE)
    assert JUDGES[component](case(known)).ok


@pytest.mark.parametrize("component", ["geth", "node"])
def test_a_long_silence_is_not(component: str) -> None:
    known = seen((90, 90, 80), (50, 100, 90))
    getattr(known, component).failed("it did not answer", NOW - PATIENCE - 1)
    refused(JUDGES[component](case(known)), reasons.NOT_ANSWERING)


def test_op_geth_says_where_it_is() -> None:
    assert judge_geth(case()).message == "serves block 105"


def test_op_geth_says_that_it_syncs() -> None:
    known = lively()
    known.saw_execution(Execution(105, syncing=True), NOW)
    assert judge_geth(case(known)).message == "serves block 105, still syncing"


def test_op_geth_with_another_first_block_has_the_wrong_genesis() -> None:
    known = lively()
    known.first_block = OTHER_HASH
    message = refused(judge_geth(case(known)), reasons.WRONG_GENESIS)
    assert HASH in message
    assert OTHER_HASH in message


@pytest.mark.parametrize(("first", "wanted"), [(HASH, HASH), (None, HASH), (OTHER_HASH, "")])
def test_a_first_block_that_nobody_can_compare_is_well(first: str | None, wanted: str) -> None:
    known = lively()
    known.first_block = first
    assert judge_geth(case(known, genesis_hash=wanted)).ok


def test_op_node_is_well_while_the_chain_makes_blocks() -> None:
    assert judge_node(case()).message == "unsafe head 105, safe head 95"


def test_op_node_that_has_just_begun_is_starting() -> None:
    message = refused(judge_node(case(seen((WINDOW, 7, 5), (0, 7, 5)))), reasons.STARTING)
    assert message == "no new block yet; unsafe head 7, safe head 5"


def test_op_node_that_makes_no_block_at_first_stands_still() -> None:
    known = seen((WINDOW + 1, 7, 5), (0, 7, 5))
    message = refused(judge_node(case(known)), reasons.UNSAFE_HEAD_STALLED)
    assert message.startswith("no new block for 1 min 1 s; unsafe head 7, safe head 5")
    assert "see the log of chain-node" in message


def test_op_node_that_makes_no_more_blocks_stands_still() -> None:
    known = seen((700, 7, 5), (600, 8, 5), (0, 8, 5))
    message = refused(judge_node(case(known)), reasons.UNSAFE_HEAD_STALLED)
    assert message.startswith("no new block for 10 min;")


def test_op_node_has_the_whole_window_for_a_block() -> None:
    assert judge_node(case(seen((100, 7, 5), (WINDOW, 8, 5), (0, 8, 5)))).ok


def test_op_geth_that_has_lost_blocks_is_told() -> None:
    known = seen((700, 7, 5), (600, 100, 5), (0, 100, 5))
    known.height = 60
    message = refused(judge_node(case(known)), reasons.UNSAFE_HEAD_STALLED)
    assert "op-geth has lost blocks, it is at 60" in message


def test_a_jwt_that_op_geth_denies_is_told() -> None:
    known = seen((WINDOW + 1, 7, 5), (0, 7, 5))
    known.knows_jwt = False
    assert "the same" in refused(judge_node(case(known)), reasons.JWT_MISMATCH)


def test_a_jwt_that_op_geth_denies_is_told_before_op_node_answers() -> None:
    """op-node does not serve before it has reached its engine."""
    known = Chronicle(knows_jwt=False)
    known.node.failed("chain-node cannot be reached", NOW - 300)
    refused(judge_node(case(known)), reasons.JWT_MISMATCH)


@pytest.mark.parametrize("knows", [True, None])
def test_a_jwt_that_is_not_denied_is_not_blamed(*, knows: bool | None) -> None:
    known = seen((WINDOW + 1, 7, 5), (0, 7, 5))
    known.knows_jwt = knows
    refused(judge_node(case(known)), reasons.UNSAFE_HEAD_STALLED)


def test_a_chain_that_makes_blocks_has_the_right_jwt() -> None:
    known = lively()
    known.knows_jwt = False
    assert judge_node(case(known)).ok


@pytest.mark.parametrize("sender", SENDERS)
def test_a_program_that_was_stopped_for_an_upgrade_says_so(sender: Sender) -> None:
    stalled = seen((700, 7, 5), (300, 100, 5), (0, 200, 5))
    for found in (case(), case(stalled), case(graph=graph({})), case(was_stalled=True)):
        refused(judge_sender(found, sender, stopped=True), reasons.UPGRADING)


def test_a_batcher_whose_batches_do_not_arrive_is_told() -> None:
    known = seen((STALL + 1, 7, 5), (300, 100, 5), (0, 200, 5))
    message = refused(judge_batcher(case(known)), reasons.SAFE_HEAD_STALLED)
    assert message.startswith("the safe head stands still at 5 for more than 10 min while")
    assert "chain-batcher-0" in message


def test_a_proposer_is_not_blamed_for_batches() -> None:
    assert judge_proposer(case(seen((STALL + 1, 7, 5), (300, 100, 5), (0, 200, 5)))).ok


def test_a_chain_that_stands_still_is_not_the_fault_of_its_batcher() -> None:
    assert judge_batcher(case(seen((STALL + 1, 7, 5), (0, 7, 5)))).ok


def test_a_stall_is_remembered_by_an_operator_that_was_started_anew() -> None:
    known = seen((10, 100, 5), (0, 105, 5))
    assert judge_batcher(case(known)).ok
    refused(judge_batcher(case(known, was_stalled=True)), reasons.SAFE_HEAD_STALLED)


def test_a_stall_that_is_remembered_ends_with_a_batch() -> None:
    assert judge_batcher(case(seen((10, 100, 5), (0, 105, 9)), was_stalled=True)).ok


@pytest.mark.parametrize("sender", SENDERS)
def test_an_account_that_is_short_of_funds_is_told(sender: Sender) -> None:
    judged = judge_sender(case(paying(sender, 0)), sender, stopped=False)
    message = refused(judged, reasons.SIGNER_FUNDS_LOW)
    assert message.startswith(f"the account of the {sender} is short of funds: it holds 0 ETH")


def test_the_funds_of_one_are_not_those_of_the_other() -> None:
    assert judge_proposer(case(paying("batcher", 0))).ok


def test_a_stall_is_worse_than_low_funds() -> None:
    known = seen((STALL + 1, 7, 5), (300, 100, 5), (0, 200, 5))
    known.payers = paying("batcher", 0).payers
    refused(judge_batcher(case(known)), reasons.SAFE_HEAD_STALLED)


def test_a_sender_says_how_much_it_has_sent() -> None:
    assert judge_batcher(case(paying("batcher", ETHER))).message == (
        "runs; its account has sent 7 transactions"
    )
    assert judge_batcher(case()).message == "runs"


def test_nobody_is_told_of_heads_that_nobody_has_seen() -> None:
    nothing = case(Chronicle(), was_stalled=True)
    for judge in JUDGES.values():
        assert "None" not in judge(nothing).message
    assert "None" not in heads(nothing)
