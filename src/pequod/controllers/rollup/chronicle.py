"""What was seen of one chain, over time. Pure: who looks is elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pequod.controllers.rollup.asking import Account, Execution
from pequod.controllers.rollup.components.senders import Sender
from pequod.controllers.rollup.funds import Funds
from pequod.controllers.rollup.progress import Heads, Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Whom to ask about a chain."""

    l1: str = field(default="", repr=False)
    """URL of L1, which may carry a key."""
    l1_chain_id: int = 0
    geth: str = ""
    """URL of op-geth; empty while it is not there."""
    engine: str = ""
    node: str = ""
    """URL of op-node; empty while it is not there."""
    genesis_hash: str = ""
    jwt: str = field(default="", repr=False)
    signers: Mapping[Sender, str] = field(default_factory=dict)
    """Addresses of the accounts that pay."""


@dataclass(slots=True)
class Seen:
    """What is known of one server that is asked."""

    at: float | None = None
    """When it last answered."""
    trouble: str = ""
    """Why it did not answer the last time; empty when it did."""
    silent_since: float | None = None
    """When it first did not answer, since it last did."""

    def answered(self, now: float) -> None:
        """It answered."""
        self.at, self.trouble, self.silent_since = now, "", None

    def failed(self, trouble: str, now: float) -> None:
        """It did not answer, or not as it should."""
        self.trouble = trouble
        if self.silent_since is None:
            self.silent_since = now


@dataclass(slots=True)
class Payer:
    """What is known of an account that pays."""

    funds: Funds = field(default_factory=Funds)
    nonce: int | None = None
    sent_at: datetime | None = None
    """When it was seen to have sent something."""

    def saw(self, account: Account, gas_price: int, now: float, wall: datetime) -> None:
        """L1 was asked about it."""
        if self.nonce is not None and account.nonce > self.nonce:
            self.sent_at = wall
        self.nonce = account.nonce
        self.funds.saw(account.balance, gas_price, now)


@dataclass(slots=True)
class Chronicle:
    """Everything that is remembered of a chain."""

    geth: Seen = field(default_factory=Seen)
    node: Seen = field(default_factory=Seen)
    l1: Seen = field(default_factory=Seen)
    height: int | None = None
    syncing: bool = False
    progress: Progress = field(default_factory=Progress)
    payers: dict[Sender, Payer] = field(default_factory=dict)
    l1_chain_id: int | None = None
    first_block: str | None = None
    knows_jwt: bool | None = None
    """Whether op-geth accepts our tokens; asked while op-node makes no progress."""

    def saw_execution(self, execution: Execution, now: float) -> None:
        """op-geth answered."""
        self.geth.answered(now)
        self.height, self.syncing = execution.height, execution.syncing

    def saw_heads(self, heads: Heads, now: float) -> None:
        """op-node answered."""
        self.node.answered(now)
        self.progress.saw(heads, now)

    def gist(self) -> tuple[object, ...]:
        """What is worth telling at once when it changes; heights are told now and then."""
        return (
            self.geth.trouble,
            self.node.trouble,
            self.l1.trouble,
            self.geth.at is None,
            self.node.at is None,
            self.progress.unsafe.moved_at is None,
            self.l1_chain_id,
            self.first_block,
            self.knows_jwt,
        )
