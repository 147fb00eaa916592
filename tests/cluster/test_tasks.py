from __future__ import annotations

import asyncio

from odradek.cluster import tasks


def test_a_task_is_over_when_its_end_returns() -> None:
    async def scenario() -> list[str]:
        done: list[str] = []

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                done.append("tidied up")

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        await tasks.cancel(task)
        assert task.cancelled()
        return done

    assert asyncio.run(scenario()) == ["tidied up"]


def test_what_never_began_need_not_end_and_others_continue() -> None:
    async def scenario() -> None:
        other = asyncio.create_task(asyncio.Event().wait())
        await tasks.cancel(None)
        await asyncio.sleep(0)
        assert not other.done()
        other.cancel()

    asyncio.run(scenario())
