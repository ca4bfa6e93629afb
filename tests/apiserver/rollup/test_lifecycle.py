"""The life of a chain: configured, deployed, running, upgraded, deleted."""

from doubles.chain import ChainDouble
from rollups import Chains, StartFamily
from waiting import until


async def test_a_chain_runs_when_its_blocks_advance(
    family: StartFamily, opchains: Chains, double: ChainDouble
) -> None:
    opchains.make_secrets()
    opchains.make_chain(double)
    async with family(double):
        await until(lambda: opchains.is_ready("chain"))
        assert opchains.chain_phase() == "Running"
        heights = opchains.component("node")
        assert 0 < heights["safeHeight"] < heights["unsafeHeight"]
        await until(lambda: opchains.component("node")["unsafeHeight"] > heights["unsafeHeight"])
        assert opchains.component("geth")["ready"]
        assert opchains.component("batcher")["balance"] == "100 ETH"
