"""Which partitions have a leader epoch that is being written, and who waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from odradek.common.ids import TopicPartition
from odradek.replication.pending_leader_epochs import PendingLeaderEpochs

FIRST, SECOND, OTHER = (TopicPartition("orders", index) for index in range(3))


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 10))


async def is_done(task: asyncio.Task[None]) -> bool:
    for _ in range(5):
        await asyncio.sleep(0)
    return task.done()


def test_a_request_waits_for_each_of_its_partitions_and_for_no_other() -> None:
    async def scenario() -> None:
        pending = PendingLeaderEpochs()
        for partition in (FIRST, SECOND, OTHER):
            pending.add(partition)
        waiting = asyncio.create_task(pending.wait_until_written([FIRST, SECOND]))

        pending.discard(SECOND)
        assert not await is_done(waiting)
        pending.discard(FIRST)
        assert await is_done(waiting)

    run(scenario())


def test_nothing_pending_is_no_wait() -> None:
    async def scenario() -> None:
        pending = PendingLeaderEpochs()
        pending.add(FIRST)
        await pending.wait_until_written([SECOND])

    run(scenario())


def test_an_epoch_that_begins_while_a_request_is_woken_is_waited_for_too() -> None:
    async def scenario() -> None:
        pending = PendingLeaderEpochs()
        pending.add(FIRST)
        waiting = asyncio.create_task(pending.wait_until_written([FIRST]))
        await asyncio.sleep(0)

        pending.discard(FIRST)
        pending.add(FIRST)
        assert not await is_done(waiting)
        pending.discard(FIRST)
        assert await is_done(waiting)

    run(scenario())


def test_a_request_that_was_cancelled_does_not_disturb_the_others() -> None:
    async def scenario() -> None:
        pending = PendingLeaderEpochs()
        pending.add(FIRST)
        cancelled, other = (asyncio.create_task(pending.wait_until_written([FIRST])) for _ in range(2))
        await asyncio.sleep(0)

        cancelled.cancel()
        await asyncio.sleep(0)
        pending.discard(FIRST)
        assert await is_done(other)

    run(scenario())


def test_it_is_empty_only_when_every_epoch_is_written() -> None:
    pending = PendingLeaderEpochs()
    assert pending.is_empty
    pending.add(FIRST)
    pending.add(FIRST)  # another decision of the controller came meanwhile
    pending.add(SECOND)
    assert FIRST in pending

    pending.discard(FIRST)
    assert (pending.is_empty, FIRST in pending) == (False, False)
    pending.discard(SECOND)
    pending.discard(OTHER)
    assert pending.is_empty
