from __future__ import annotations

import asyncio

from odradek.transactions.completions import Completions

LONG_S = 60.0


def test_a_completion_wakes_all_who_wait_for_that_id() -> None:
    async def main() -> None:
        completions = Completions()
        first, second, other = (
            asyncio.ensure_future(completions.wait(name, LONG_S)) for name in ("a", "a", "b")
        )
        await asyncio.sleep(0)
        completions.notify("a")
        await asyncio.gather(first, second)
        assert not other.done()
        completions.notify("b")
        await other
        assert len(completions) == 0

    asyncio.run(main())


def test_who_gives_up_leaves_nothing_behind() -> None:
    async def main() -> None:
        completions = Completions()
        await completions.wait("a", 0.001)
        gone = asyncio.ensure_future(completions.wait("b", LONG_S))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert len(completions) == 0
        completions.notify("a")

    asyncio.run(main())
