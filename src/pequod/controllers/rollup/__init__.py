"""The rollup family: OP Stack chains, from configuration Secrets to programs that make progress.

Everything is checked before anything starts: the files against each other, against the spec and,
where it answers, against L1. Compiled to a graph, stored in the order of an upgrade, and judged by
the blocks that are made, not by pods that run.
"""
