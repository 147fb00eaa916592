from __future__ import annotations

import asyncio
import sys

import pytest

from odradek.broker.requests.waiting.timeouts import Timeout, Timeouts


class Waiting(Timeout):
    """Something that waits, with a name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


@pytest.fixture
def scenario():
    def run(main) -> None:
        async def with_timeouts() -> None:
            expired: list[str] = []
            timeouts = Timeouts(asyncio.get_running_loop(), lambda one: expired.append(one.name))
            await main(timeouts, expired)

        asyncio.run(with_timeouts())

    return run


def test_what_is_not_over_in_time_expires_in_the_order_of_deadlines(scenario):
    async def main(timeouts, expired) -> None:
        for name, timeout_ms in (("late", 60), ("first", 10), ("second", 30), ("never", 60_000)):
            timeouts.add(Waiting(name), timeout_ms)
        assert len(timeouts) == 4
        while len(timeouts) > 1:
            await asyncio.sleep(0.005)
        assert expired == ["first", "second", "late"]

    scenario(main)


def test_what_is_cancelled_does_not_expire(scenario):
    async def main(timeouts, expired) -> None:
        kept, cancelled = Waiting("kept"), Waiting("cancelled")
        timeouts.add(cancelled, 10)
        timeouts.add(kept, 10)
        timeouts.cancel(cancelled)
        timeouts.cancel(cancelled)
        assert len(timeouts) == 1
        while len(timeouts):
            await asyncio.sleep(0.005)
        timeouts.cancel(kept)
        assert (expired, len(timeouts)) == (["kept"], 0)

    scenario(main)


def test_entries_that_are_over_are_not_kept_until_their_deadline(scenario):
    async def main(timeouts, expired) -> None:
        patient = Waiting("patient")
        timeouts.add(patient, 3_600_000)
        waiting = [Waiting(str(number)) for number in range(1_000)]
        for one in waiting:
            timeouts.add(one, 3_600_000)
            timeouts.cancel(one)
        del one
        assert not any(sys.getrefcount(each) > 3 for each in waiting)
        assert (len(timeouts), patient.is_over) == (1, False)

    scenario(main)


def test_clients_with_a_timeout_each_leave_only_a_few_queues_behind(scenario):
    async def main(timeouts, expired) -> None:
        patient = Waiting("patient")
        timeouts.add(patient, 3_600_000)
        for more_ms in range(1, 1_000):
            one = Waiting(str(more_ms))
            timeouts.add(one, 3_600_000 + more_ms)
            timeouts.cancel(one)
        assert len(timeouts.queues) <= 70
        assert 3_600_000 in timeouts.queues
        assert len(timeouts) == 1

    scenario(main)


def test_a_shorter_timeout_does_not_wait_for_the_timer_of_a_longer_one(scenario):
    async def main(timeouts, expired) -> None:
        for name, timeout_ms in (("hours", 3_600_000), ("soon", 5)):
            timeouts.add(Waiting(name), timeout_ms)
        while len(timeouts) > 1:
            await asyncio.sleep(0.001)
        assert expired == ["soon"]

    scenario(main)


def test_later_additions_expire_after_the_first_timer(scenario):
    async def main(timeouts, expired) -> None:
        timeouts.add(Waiting("a"), 20)
        await asyncio.sleep(0.01)
        timeouts.add(Waiting("b"), 20)
        while len(timeouts):
            await asyncio.sleep(0.002)
        assert expired == ["a", "b"]

    scenario(main)
