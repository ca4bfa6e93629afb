"""What a chain says of itself: the status of each program, and the phase of all."""

from datetime import datetime

from pequod.api import reasons
from pequod.api.rollup import (
    BatcherStatus,
    ComponentStatus,
    GethStatus,
    NodeStatus,
    OPChain,
    Phase,
    ProposerStatus,
)
from pequod.controllers.frontend import following
from pequod.controllers.rollup.chronicle import Chronicle, Payer
from pequod.controllers.rollup.components.chain import Component
from pequod.controllers.rollup.components.senders import Sender
from pequod.controllers.rollup.funds import ether
from pequod.controllers.rollup.judging import Case, Judgement

Judgements = dict[Component, Judgement]
_NEW = frozenset({"Pending", "ConfigLoading", "Deploying"})


def report(chain: OPChain, judged: Judgements, seen: Chronicle) -> None:
    """Have the status of each program say what is known; what was known before stays."""
    before, made = chain.status.component_status, ComponentStatus()
    if geth := judged.get("geth"):
        made.geth = _geth(geth, seen, before.geth or GethStatus())
    if node := judged.get("node"):
        made.node = _node(node, seen, before.node or NodeStatus())
    if batcher := judged.get("batcher"):
        made.batcher = _batcher(batcher, seen, before.batcher or BatcherStatus())
    if proposer := judged.get("proposer"):
        made.proposer = _proposer(proposer, seen, before.proposer or ProposerStatus())
    chain.status.component_status = made


def phase(chain: OPChain, case: Case, judged: Judgements, *, upgrading: bool) -> Phase:
    """Where a chain stands that has a graph."""
    was = chain.status.phase
    base = [judged[one] for one in ("geth", "node") if one in judged] or [*judged.values()]
    runs = all(one.ok for one in base)
    if upgrading or (was == "Upgrading" and not (runs and following.is_ready(case.graph))):
        return "Upgrading"
    patient = all(one.ok or one.reason in reasons.ON_THE_WAY for one in base)
    unseen = case.seen.progress.unsafe.height is None
    # What nobody has looked at for long enough yet is what it was, for a while.
    believed = patient and case.seen.progress.unsafe.moved_at is None
    if runs or (was == "Running" and (case.advances or believed)):
        return "Running"
    before = chain.status.component_status.node
    fresh = was in _NEW or (unseen and (before is None or before.unsafe_height is None))
    if fresh and patient and was != "Running" and case.graph.status.phase != "Failed":
        return "Deploying"
    return "Error"


def _geth(judged: Judgement, seen: Chronicle, before: GethStatus) -> GethStatus:
    height = seen.height if seen.height is not None else before.sync_height
    return GethStatus(ready=judged.ok, sync_height=height, message=judged.message)


def _node(judged: Judgement, seen: Chronicle, before: NodeStatus) -> NodeStatus:
    progress, known = seen.progress, before
    if progress.unsafe.height is not None:
        known = NodeStatus(
            safe_height=progress.safe.height,
            unsafe_height=progress.unsafe.height,
            finalized_height=progress.finalized,
        )
    return NodeStatus(
        ready=judged.ok,
        safe_height=known.safe_height,
        unsafe_height=known.unsafe_height,
        finalized_height=known.finalized_height,
        message=judged.message,
    )


def _batcher(judged: Judgement, seen: Chronicle, before: BatcherStatus) -> BatcherStatus:
    sent, balance = _paid(seen, "batcher")
    return BatcherStatus(
        ready=judged.ok,
        last_batch_submission=sent or before.last_batch_submission,
        balance=balance or before.balance,
        message=judged.message,
    )


def _proposer(judged: Judgement, seen: Chronicle, before: ProposerStatus) -> ProposerStatus:
    sent, balance = _paid(seen, "proposer")
    return ProposerStatus(
        ready=judged.ok,
        last_proposal=sent or before.last_proposal,
        balance=balance or before.balance,
        message=judged.message,
    )


def _paid(seen: Chronicle, sender: Sender) -> tuple[datetime | None, str | None]:
    payer = seen.payers.get(sender, Payer())
    held = payer.funds.balance
    return payer.sent_at, ether(held) if held is not None else None
