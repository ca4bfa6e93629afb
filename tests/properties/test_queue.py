"""Whatever happens, no key is lost, none is with two workers, and every one gets its turn."""

import asyncio
import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from pequod.base.backoff import Backoff
from pequod.runtime.queue import Priority, Queue
from virtualtime import run

KEYS = st.sampled_from("abcd")
_names = (f"property-{number}" for number in itertools.count())

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), KEYS, st.sampled_from(Priority)),
        st.tuples(st.just("later"), KEYS, st.floats(0.1, 50)),
        st.tuples(st.just("wait"), st.just(""), st.floats(0, 20)),
    ),
    max_size=40,
)
OUTCOMES = st.lists(st.sampled_from(["done", "fail", "slow"]), max_size=40)


@settings(max_examples=150, deadline=None)
@given(actions=ACTIONS, outcomes=OUTCOMES, workers=st.integers(1, 3))
def test_every_key_that_was_added_is_worked_on_after_it_was_added_by_one_worker_at_a_time(
    actions: list[tuple[str, str, float]], outcomes: list[str], workers: int
) -> None:
    async def main() -> None:
        line: Queue[str] = Queue(next(_names), Backoff(first=1, limit=10))
        busy: set[str] = set()
        added: dict[str, int] = {}
        worked: dict[str, int] = {}
        steps = itertools.count(1)
        fate = iter(outcomes)

        async def work() -> None:
            while True:
                key = await line.get()
                assert key not in busy, "two workers have the same key"
                busy.add(key)
                worked[key] = next(steps)
                outcome = next(fate, "done")
                await asyncio.sleep(3 if outcome == "slow" else 0)
                if outcome == "fail":
                    line.retry(key)
                else:
                    line.succeeded(key)
                busy.discard(key)
                line.done(key)

        pool = [asyncio.create_task(work()) for _ in range(workers)]
        for action, key, value in actions:
            if action == "wait":
                await asyncio.sleep(value)
                continue
            added[key] = next(steps)
            if action == "add":
                line.add(key, Priority(int(value)))
            else:
                line.add_after(key, value)
        await asyncio.sleep(10_000)
        assert all(not task.done() for task in pool), [t for t in pool if t.done()]
        assert len(line) == 0
        assert all(worked.get(key, 0) > when for key, when in added.items())
        for task in pool:
            task.cancel()
        await asyncio.gather(*pool, return_exceptions=True)

    run(main())
