from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from log.cleaner.given_compaction import append, manager_of, records_of
from log.cleaner.test_manager import a_dirty_log
from log.given_logs import NOW_MS
from odradek.log.cleaner.config import CleanerConfig
from odradek.log.cleaner.manager import CleaningResult
from odradek.log.cleaner.worker import CleanerWorker

QUICK = CleanerConfig(log_cleaner_threads=2, log_cleaner_backoff_ms=10)


async def until(holds: object) -> None:
    for _ in range(500):
        if holds():  # type: ignore[operator]
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


@pytest.mark.parametrize("threads", [1, 2])
def test_logs_are_cleaned_one_per_thread_until_none_is_dirty(tmp_path: Path, threads: int) -> None:
    logs = [a_dirty_log(tmp_path / str(number), number) for number in range(3)]
    outcomes: list[CleaningResult] = []

    async def main() -> None:
        config = CleanerConfig(log_cleaner_threads=threads, log_cleaner_backoff_ms=10)
        worker = CleanerWorker(manager_of(*logs, config=config), lambda: NOW_MS, outcomes.append)
        running = asyncio.create_task(worker.run())
        await until(lambda: len(outcomes) == 3)
        worker.stop()
        await asyncio.wait_for(running, 10)

    asyncio.run(main())

    assert sorted(outcome.partition.partition for outcome in outcomes) == [0, 1, 2]
    assert all(outcome.problem is None for outcome in outcomes)
    assert [len(records_of(log)) for log in logs] == [5, 5, 5]


def test_the_loop_serves_appends_while_threads_clean(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path, rounds=400)
    outcomes: list[CleaningResult] = []

    async def main() -> None:
        worker = CleanerWorker(manager_of(log, config=QUICK), lambda: NOW_MS, outcomes.append)
        running = asyncio.create_task(worker.run())
        while not outcomes:
            append(log, [(b"live", b"x")])
            await asyncio.sleep(0)
        worker.stop()
        await asyncio.wait_for(running, 10)

    asyncio.run(main())

    assert outcomes[0].problem is None
    assert [value for _, key, value in records_of(log) if key != b"live"] == [b"x" * 50] * 5
    live = [offset for offset, key, _ in records_of(log) if key == b"live"]
    assert live == list(range(400, log.log_end_offset))


def test_a_stop_ends_runs_under_way(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path, rounds=400)
    config = CleanerConfig(log_cleaner_io_max_bytes_per_second=10_000, log_cleaner_io_buffer_size=8192)
    outcomes: list[CleaningResult] = []

    async def main() -> None:
        worker = CleanerWorker(manager_of(log, config=config), lambda: NOW_MS, outcomes.append)
        running = asyncio.create_task(worker.run())
        await until(lambda: worker.manager.running)
        worker.stop()
        await asyncio.wait_for(running, 10)

    asyncio.run(main())

    assert [outcome.problem for outcome in outcomes] == ["orders-0: cleaning was aborted"]
    assert len(records_of(log)) == 400


def test_a_cleaner_that_is_off_returns_at_once(tmp_path: Path) -> None:
    log = a_dirty_log(tmp_path)
    before = records_of(log)
    manager = manager_of(log, config=CleanerConfig(log_cleaner_enable=False))
    worker = CleanerWorker(manager, lambda: NOW_MS, lambda outcome: None)

    asyncio.run(asyncio.wait_for(worker.run(), 5))

    assert records_of(log) == before
