"""Stops a query after its micro-batch.

`StreamingQuery.stop()` interrupts the micro-batch. Spark's own loop looks at the query's state between two
micro-batches and ends when it is TERMINATED; but a micro-batch that is planned in that state interrupts
itself. So the state may change only where no micro-batch is planned: Spark holds the lock of its progress
while it writes the offsets of a micro-batch and while it commits it, and we wait with that lock in hand:

    offsets written, not committed, query's thread waits for the lock    executed: it commits, then ends
    offsets written, not committed, thread elsewhere                     planned or executed: look again
    no offsets beyond the commits                                        idle: interrupt the thread, it ends

None of this is part of the public interface, so tests/spark/pipeline/driver/test_stopping.py guards it, and
without it stop() is called.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException


class BatchEnd:
    """Ends one query after its micro-batch. Owned by the driver's main thread, since a lock has a thread."""

    def __init__(self, query: Any) -> None:
        self._query = query
        self._holds_lock = False
        self._is_done = False

    def look(self) -> None:
        """Let the query end if it can; to be called again and again."""
        if self._is_done:
            return
        try:
            self._is_done = self._try()
        except (Py4JError, AttributeError, TypeError):
            self.release()
            self._query.stop()

    def _try(self) -> bool:
        execution = self._query._jsq.streamingQuery()
        lock, thread = execution.awaitProgressLock(), execution.queryExecutionThread()
        if not self._holds_lock:
            self._holds_lock = lock.tryLock()
            if not self._holds_lock:
                return False
        is_waiting, is_in_batch = lock.hasQueuedThread(thread), _is_in_batch(execution)
        if is_in_batch and thread.isAlive() and not is_waiting:
            return False
        execution.state().set(_terminated_state(execution))
        if not is_in_batch:
            thread.interrupt()
        self.release()
        return True

    def release(self) -> None:
        """Give the lock back; a query that is not ended goes on."""
        self._is_done = True
        if self._holds_lock:
            self._holds_lock = False
            self._query._jsq.streamingQuery().awaitProgressLock().unlock()


def has_ended(query: Any) -> bool:
    """Whether the thread of the query is gone."""
    try:
        return not query._jsq.streamingQuery().queryExecutionThread().isAlive()
    except (Py4JError, AttributeError, TypeError):
        return not query.isActive


@contextmanager
def only_logged(problem: str) -> Iterator[None]:
    """Write an error of Spark at the end of a run into the log: it must not hide why the run has failed."""
    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        print(f"{problem}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)


def _is_in_batch(execution: Any) -> bool:
    """Whether there is a micro-batch whose offsets are written and which is not committed."""
    begun, committed = execution.offsetLog().getLatestBatchId(), execution.commitLog().getLatestBatchId()
    return bool(begun.isDefined() and not (committed.isDefined() and committed.get() >= begun.get()))


def _terminated_state(execution: Any) -> Any:
    """The object TERMINATED, beside the class of the present state."""
    package = execution.state().get().getClass().getPackageName()
    loader = execution.getClass().getClassLoader()
    found = loader.loadClass(f"{package}.TERMINATED$")
    return found.getField("MODULE$").get(None)
