"""The one error of this package: what a person has to know, and what to do next."""


class DevError(Exception):
    """Something that only a person can mend: one sentence on the problem, one on the way out."""

    def __init__(self, problem: str, *, next_step: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.next_step = next_step
