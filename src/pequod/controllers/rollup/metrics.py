"""What is measured of chains, by namespace and name."""

from prometheus_client import Gauge

from pequod.controllers.rollup.chronicle import Chronicle
from pequod.controllers.rollup.components.senders import SENDERS, Sender
from pequod.controllers.rollup.funds import ETHER
from pequod.kube.objects import Key

_CHAIN = ("namespace", "name")
_ACCOUNT = (*_CHAIN, "component")

HEIGHTS = {
    name: Gauge(f"pequod_opchain_{name}_height", text, _CHAIN)
    for name, text in (
        ("geth", "Newest block of op-geth."),
        ("unsafe", "Newest block of the sequencer."),
        ("safe", "Newest block that L1 has all data of."),
        ("finalized", "Newest block that only L1 itself could take back."),
    )
}
STILL = Gauge(
    "pequod_opchain_safe_head_still_seconds", "For how long the safe head has stood still.", _CHAIN
)
BALANCE = Gauge("pequod_opchain_signer_balance_ether", "What an account holds on L1.", _ACCOUNT)
HOURS = Gauge(
    "pequod_opchain_signer_hours_left", "How long a balance lasts at the rate of late.", _ACCOUNT
)


def measure(key: Key, seen: Chronicle, now: float) -> None:
    """Set everything that is known of a chain."""
    progress = seen.progress
    heights = {
        "geth": seen.height,
        "unsafe": progress.unsafe.height,
        "safe": progress.safe.height,
        "finalized": progress.finalized,
    }
    for name, height in heights.items():
        if height is not None:
            HEIGHTS[name].labels(*key).set(height)
    if progress.safe.height is not None:
        STILL.labels(*key).set(progress.safe.still_for(now))
    for sender in SENDERS:
        if sender not in seen.payers:
            _forget_account(key, sender)
    for sender, payer in seen.payers.items():
        if payer.funds.balance is not None:
            BALANCE.labels(*key, sender).set(payer.funds.balance / ETHER)
        hours = payer.funds.hours_left()
        HOURS.labels(*key, sender).set(float("inf") if hours is None else hours)


def _forget_account(key: Key, sender: Sender) -> None:
    for gauge in (BALANCE, HOURS):
        gauge.remove_by_labels({"namespace": key.namespace, "name": key.name, "component": sender})


def forget(key: Key) -> None:
    """A chain is gone."""
    for gauge in (*HEIGHTS.values(), STILL, BALANCE, HOURS):
        gauge.remove_by_labels({"namespace": key.namespace, "name": key.name})
