"""Calls to the shared store for a client, with a time limit and a retriable error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordination.errors import SessionExpired, StoreClosed, StoreError, StoreUnavailable

Result = TypeVar("Result")

PATIENCE_SECONDS = 15.0
"""For requests without a time-out of their own; clients wait 30 seconds by default."""


class StoreNotReached(KafkaError):
    """The store could not be reached in time: a write may or may not have happened."""

    error_code = ErrorCode.REQUEST_TIMED_OUT


def as_kafka_error(error: StoreError) -> KafkaError | None:
    """The error for a client, if the store is merely away; None if something is wrong that will not pass."""
    if isinstance(error, (StoreUnavailable, SessionExpired, StoreClosed)):
        return StoreNotReached(f"The cluster's store cannot be used at the moment: {error}")
    return None


async def from_store(operation: Awaitable[Result], timeout_seconds: float = PATIENCE_SECONDS) -> Result:
    """The result of an operation on the store; raises StoreNotReached after the time-out."""
    try:
        async with asyncio.timeout(max(timeout_seconds, 0)):
            return await operation
    except TimeoutError:
        raise StoreNotReached("The cluster's store did not answer in time.") from None
    except StoreError as error:
        translated = as_kafka_error(error)
        if translated is None:
            raise
        raise translated from error
