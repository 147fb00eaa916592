"""Waiting for what the controller decides: woken by changes, not by a clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from odradek.broker.control.state_changes import StateChanges


class Counted:
    """A condition that counts how often it is checked."""

    def __init__(self) -> None:
        self.holds = False
        self.checks = 0

    def __call__(self) -> bool:
        self.checks += 1
        return self.holds


def scenario(main: Callable[[StateChanges, Counted], Awaitable[None]]) -> None:
    async def in_time() -> None:
        changes = StateChanges()
        await asyncio.wait_for(main(changes, Counted()), 10)
        assert len(changes) == 0

    asyncio.run(in_time())


def test_a_condition_is_checked_at_changes_only() -> None:
    async def main(changes: StateChanges, condition: Counted) -> None:
        waiting = asyncio.create_task(changes.wait_until(condition))
        await asyncio.sleep(0.05)
        assert condition.checks == 1
        changes.notify()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (condition.checks, waiting.done()) == (2, False)
        condition.holds = True
        changes.notify()
        assert await waiting
        assert condition.checks == 3

    scenario(main)


def test_what_holds_already_is_not_waited_for() -> None:
    async def main(changes: StateChanges, condition: Counted) -> None:
        condition.holds = True
        assert await changes.wait_until(condition, deadline=0.0)

    scenario(main)


def test_the_wait_ends_at_its_deadline() -> None:
    async def main(changes: StateChanges, condition: Counted) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + 0.05
        assert not await changes.wait_until(condition, deadline)
        assert loop.time() >= deadline
        assert not await changes.wait_until(condition, deadline)

    scenario(main)


def test_all_who_wait_are_woken_and_those_who_left_are_forgotten() -> None:
    async def main(changes: StateChanges, condition: Counted) -> None:
        leaving = asyncio.create_task(changes.wait_until(condition))
        staying = [asyncio.create_task(changes.wait_until(condition)) for _ in range(3)]
        await asyncio.sleep(0)
        assert len(changes) == 4
        leaving.cancel()
        with suppress(asyncio.CancelledError):
            await leaving
        assert len(changes) == 3
        condition.holds = True
        changes.notify()
        assert await asyncio.gather(*staying) == [True] * 3

    scenario(main)
