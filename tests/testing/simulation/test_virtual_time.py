from __future__ import annotations

import asyncio

from odradek.testing.simulation.virtual_time import (
    SimulatedProcess,
    current_process,
    run_in_virtual_time,
)


async def count(seen: list[float]) -> None:
    while True:
        seen.append(asyncio.get_running_loop().time())
        await asyncio.sleep(1)


def test_time_jumps_to_the_next_timer() -> None:
    async def scenario() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(scenario()) == 3600


def test_code_of_a_killed_process_never_runs_again() -> None:
    async def scenario() -> list[float]:
        seen: list[float] = []
        process = SimulatedProcess("broker 0")
        task = process.create_task(count(seen))
        await asyncio.sleep(2.5)
        process.kill()
        await asyncio.sleep(10)
        assert not task.done()
        return seen

    assert run_in_virtual_time(scenario()) == [0, 1, 2]


def test_a_stopped_process_continues_where_it_was() -> None:
    async def scenario() -> list[float]:
        seen: list[float] = []
        process = SimulatedProcess("broker 0")
        process.create_task(count(seen))
        await asyncio.sleep(1.5)
        process.stop()
        await asyncio.sleep(10)
        process.resume()
        await asyncio.sleep(1.2)
        return seen

    assert run_in_virtual_time(scenario()) == [0, 1, 11.5, 12.5]


def test_tasks_and_timers_inherit_the_process() -> None:
    async def scenario() -> list[SimulatedProcess | None]:
        seen: list[SimulatedProcess | None] = []
        process = SimulatedProcess("broker 0")

        async def child() -> None:
            asyncio.get_running_loop().call_later(1, lambda: seen.append(current_process()))
            seen.append(current_process())

        async def parent() -> None:
            await asyncio.create_task(child())

        process.create_task(parent())
        await asyncio.sleep(2)
        seen.append(current_process())
        assert seen[0] is process
        assert seen[1] is process
        return seen

    assert run_in_virtual_time(scenario())[2] is None
