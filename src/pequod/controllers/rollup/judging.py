"""What is to be said of each program: by what it does, not by whether its pod runs. Pure."""

from dataclasses import dataclass

from pequod.api import reasons
from pequod.api.graph import NodeStatus
from pequod.api.platform import ResourceGraph
from pequod.api.reasons import Reason
from pequod.base.durations import words
from pequod.controllers.rollup.chronicle import Chronicle, Seen
from pequod.controllers.rollup.components.chain import Component
from pequod.controllers.rollup.components.senders import Sender

PATIENCE = 45.0
"""Seconds for which a program may be silent."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a program does what it should."""

    ok: bool
    message: str
    reason: Reason = reasons.SUCCEEDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything that a judgement may need."""

    name: str
    graph: ResourceGraph
    seen: Chronicle
    now: float
    genesis_hash: str
    block_window: float
    """Seconds within which a chain makes a block."""
    stall_window: float
    funds_hours: int
    made_blocks: bool = False
    """Whether the chain was known to make blocks before this operator began to look."""
    was_stalled: bool
    """Whether the safe head was known to stand still before this operator began to look."""

    @property
    def advances(self) -> bool:
        """Whether the chain makes blocks."""
        node = self.seen.node
        silent = node.silent_since is not None and self.now - node.silent_since > PATIENCE
        # Who was not asked for a while cannot be blamed for what nobody saw.
        when = self.now if node.at is None or silent else node.at
        return self.seen.progress.unsafe.moves(when, self.block_window)


def is_current(graph: ResourceGraph) -> bool:
    """Whether the status of a graph speaks of what it asks for now."""
    return graph.status.observed_generation == graph.metadata.generation


def is_ready(graph: ResourceGraph, component: Component) -> bool:
    """Whether the workload of a program is as the graph has it."""
    node = graph.status.node_status.get(component)
    return node is not None and node.phase == "Ready" and is_current(graph)


def judge_geth(case: Case) -> Judgement:
    """op-geth serves, and its chain is the right one."""
    if (problem := _workload(case, "geth")) or (problem := _silence(case, case.seen.geth)):
        return problem
    first = case.seen.first_block
    if case.genesis_hash and first is not None and first != case.genesis_hash:
        return Judgement(
            ok=False,
            reason=reasons.WRONG_GENESIS,
            message=f"its first block is {first}, but .genesis.l2.hash of rollup.json is "
            f"{case.genesis_hash}: genesis.json and rollup.json are not of the same chain",
        )
    syncing = ", still syncing" if case.seen.syncing else ""
    return Judgement(ok=True, message=f"serves block {case.seen.height}{syncing}")


def judge_node(case: Case) -> Judgement:
    """op-node serves, and makes blocks."""
    if problem := _workload(case, "node"):
        return problem
    if case.seen.knows_jwt is False and not case.advances:
        return Judgement(
            ok=False,
            reason=reasons.JWT_MISMATCH,
            message="op-geth does not accept the JWT of the configuration: both programs must "
            "run with the same one; delete their pods to start them with the present one",
        )
    if problem := _silence(case, case.seen.node):
        return problem
    head = case.seen.progress.unsafe
    early = head.moved_at is None and head.still_for(case.now) <= case.block_window
    if case.advances or (early and case.made_blocks):
        return Judgement(ok=True, message=heads(case))
    if early:
        return Judgement(
            ok=False, reason=reasons.STARTING, message=f"no new block yet; {heads(case)}"
        )
    still = words(round(case.now - max(head.since, head.moved_at or 0.0)))
    advice = f"see the log of {case.name}-node, and whether L1 answers"
    if case.seen.height is not None and case.seen.height < (head.height or 0):
        advice = (
            f"op-geth has lost blocks, it is at {case.seen.height}: delete the pod of "
            f"{case.name}-node, so that op-node begins there"
        )
    return Judgement(
        ok=False,
        reason=reasons.UNSAFE_HEAD_STALLED,
        message=f"no new block for {still}; {heads(case)}: {advice}",
    )


def judge_sender(case: Case, sender: Sender, *, stopped: bool) -> Judgement:
    """A program that sends to L1 serves, can pay, and what it sends arrives."""
    if stopped:
        return Judgement(
            ok=False, reason=reasons.UPGRADING, message="stopped while op-geth and op-node change"
        )
    if problem := _workload(case, sender):
        return problem
    if sender == "batcher" and (problem := _stall(case)):
        return problem
    return _short_of_funds(case, sender) or Judgement(ok=True, message=_sent(case, sender))


def heads(case: Case) -> str:
    """Where the chain stands, for people."""
    progress = case.seen.progress
    if progress.unsafe.height is None:
        return "no head seen yet"
    return f"unsafe head {progress.unsafe.height}, safe head {progress.safe.height}"


def _stall(case: Case) -> Judgement | None:
    progress = case.seen.progress
    # Only a safe head that moves is proof to the contrary.
    still = progress.safe.still_for(case.now) > case.stall_window
    known = case.was_stalled and (progress.safe.moved_at is None or still)
    if not known and not progress.safe_head_stalled(case.now, case.stall_window):
        return None
    where = f"at {progress.safe.height} " if progress.safe.height is not None else ""
    return Judgement(
        ok=False,
        reason=reasons.SAFE_HEAD_STALLED,
        message=f"the safe head stands still {where}for more than {words(case.stall_window)} while "
        f"the unsafe head moves ({heads(case)}): see the log of {case.name}-batcher-0, whether L1 "
        "takes its transactions, and delete the pod to start it anew",
    )


def _short_of_funds(case: Case, sender: Sender) -> Judgement | None:
    payer = case.seen.payers.get(sender)
    problem = payer.funds.problem(case.funds_hours) if payer else ""
    if not problem:
        return None
    return Judgement(
        ok=False,
        reason=reasons.SIGNER_FUNDS_LOW,
        message=f"the account of the {sender} is short of funds: {problem}; send ether to it on L1",
    )


def _sent(case: Case, sender: Sender) -> str:
    payer = case.seen.payers.get(sender)
    if payer is None or payer.nonce is None:
        return "runs"
    return f"runs; its account has sent {payer.nonce} transactions"


def _workload(case: Case, component: Component) -> Judgement | None:
    """Why the workload of a program is not what the graph has; None when it is."""
    if is_ready(case.graph, component):
        return None
    node = case.graph.status.node_status.get(component, NodeStatus())
    if node.last_error:
        return Judgement(ok=False, reason=reasons.NODES_FAILED, message=node.last_error)
    waits = node.ready_details or "waits for what comes before it"
    return Judgement(ok=False, reason=reasons.WAITING_FOR_NODES, message=waits)


def _silence(case: Case, seen: Seen) -> Judgement | None:
    """Why a program counts as silent; a short silence is none yet."""
    if not seen.trouble:
        if seen.at is not None:
            return None
        return Judgement(ok=False, reason=reasons.STARTING, message="has not been asked yet")
    if case.now - (seen.silent_since or case.now) > PATIENCE:
        return Judgement(ok=False, reason=reasons.NOT_ANSWERING, message=seen.trouble)
    if seen.at is not None:
        return None
    return Judgement(ok=False, reason=reasons.STARTING, message=f"not yet: {seen.trouble}")
