"""op-proposer: writes the chain's state to L1, so that withdrawals can be proved."""

from pequod.api.graph import Node
from pequod.controllers.rollup.components.chain import NODE_RPC, PROPOSER_RPC, Chain
from pequod.controllers.rollup.components.senders import sender


def proposer(chain: Chain) -> tuple[Node, ...]:
    """Everything of op-proposer."""
    signer = chain.configuration.proposer
    assert signer is not None, "a proposer that is enabled has a key: the schema asks for it"
    return sender(chain, "proposer", signer, _arguments(chain), PROPOSER_RPC)


def _arguments(chain: Chain) -> list[str]:
    arguments = [
        f"--rollup-rpc={chain.url('node', NODE_RPC)}",
        "--poll-interval=12s",
        "--num-confirmations=1",
    ]
    known = chain.spec.l1.contract_addresses
    if known.dispute_game_factory is not None:
        return [
            *arguments,
            f"--game-factory-address={known.dispute_game_factory}",
            "--game-type=1",
            "--proposal-interval=1h",
        ]
    return [*arguments, f"--l2oo-address={known.l2_output_oracle}"]
