"""op-batcher: writes the chain's transactions to L1."""

from pequod.api.graph import Node
from pequod.controllers.rollup.components.chain import BATCHER_RPC, HTTP, NODE_RPC, Chain
from pequod.controllers.rollup.components.senders import sender


def batcher(chain: Chain) -> tuple[Node, ...]:
    """Everything of op-batcher."""
    signer = chain.configuration.batcher
    assert signer is not None, "a batcher that is enabled has a key: the schema asks for it"
    return sender(chain, "batcher", signer, _arguments(chain), BATCHER_RPC)


def _arguments(chain: Chain) -> list[str]:
    # Blobs can only be read from L1's beacon chain.
    availability = "auto" if chain.spec.l1.beacon_url else "calldata"
    return [
        f"--l2-eth-rpc={chain.url('geth', HTTP)}",
        f"--rollup-rpc={chain.url('node', NODE_RPC)}",
        f"--data-availability-type={availability}",
        "--poll-interval=1s",
        "--sub-safety-margin=6",
        "--num-confirmations=1",
        "--resubmission-timeout=30s",
        # A quiet chain, too, moves its safe head well within the stall window.
        "--max-channel-duration=10",
        # Throttling would need an interface of geth that is not for everybody.
        "--throttle.unsafe-da-bytes-lower-threshold=0",
    ]
