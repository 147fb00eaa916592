"""Stops a query after its micro-batch.

`StreamingQuery.stop()` interrupts the micro-batch. Spark's own loop looks at the query's state between two
micro-batches and ends when it is TERMINATED; setting that state is what stop() does first. It is not part
of the public interface, so tests/spark/pipeline/test_run.py guards it, and without it stop() is called.
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError


def end_after_batch(query: Any) -> bool:
    """Let a query end after its micro-batch; False if only stop() can end it."""
    try:
        execution = query._jsq.streamingQuery()
        terminated = _terminated_state(execution)
        execution.state().set(terminated)
    except (Py4JError, AttributeError, TypeError):
        return False
    return True


def has_ended(query: Any) -> bool:
    """Whether the thread of the query is gone."""
    try:
        return not query._jsq.streamingQuery().queryExecutionThread().isAlive()
    except (Py4JError, AttributeError, TypeError):
        return not query.isActive


def _terminated_state(execution: Any) -> Any:
    """The object TERMINATED, beside the class of the present state."""
    package = execution.state().get().getClass().getPackageName()
    loader = execution.getClass().getClassLoader()
    found = loader.loadClass(f"{package}.TERMINATED$")
    return found.getField("MODULE$").get(None)
