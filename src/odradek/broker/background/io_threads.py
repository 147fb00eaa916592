"""Threads for what may block: fsync, reads from disk, directory work; their number may change at run time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


class IoThreads(Executor):
    """`num.io.threads` of them. Owned by the broker, on the loop; work is submitted from there."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._threads = self._start()

    def _start(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.count, thread_name_prefix="io")

    def submit(self, function: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        """Have a thread call the function; for `loop.run_in_executor`."""
        return self._threads.submit(function, *args, **kwargs)

    def resize(self, count: int) -> None:
        """Change the number of threads; submitted work finishes on the old ones."""
        if count != self.count:
            self.count = count
            self._threads.shutdown(wait=False)
            self._threads = self._start()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more work; with `wait`, return when all of it is done."""
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
