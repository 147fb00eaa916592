"""Errors of a producer's records other than those reported by brokers."""

from __future__ import annotations

from odradek.client.errors import ClientError, described
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition


class DeliveryTimedOut(ClientError, TimeoutError):
    """A record was not acknowledged within `delivery_timeout_ms`; it may or may not have been written.

    `why` is the last failure that delayed it, if any.
    """

    def __init__(
        self, partition: TopicPartition, timeout_ms: int, attempts: int, why: BaseException | None = None
    ) -> None:
        self.partition = partition
        self.timeout_ms = timeout_ms
        self.attempts = attempts
        self.why = why
        tried = f"; it was repeated {attempts} times" if attempts else ""
        because = f": {described(why)}" if why is not None else ""
        super().__init__(
            f"a batch for {partition} was not acknowledged within {timeout_ms} ms{tried}{because}"
        )

    def __str__(self) -> str:
        return str(self.args[0])


class BufferExhausted(ClientError, TimeoutError):
    """`buffer_memory` was full for as long as `max_block_ms`; the record was not accepted."""

    is_retriable = True

    def __init__(self, needed: int, timeout_ms: int) -> None:
        self.needed = needed
        self.timeout_ms = timeout_ms
        super().__init__(f"buffer_memory had no {needed} bytes free within max_block_ms={timeout_ms}")

    def __str__(self) -> str:
        return str(self.args[0])


class RecordTooLarge(KafkaError):
    """A record that is too large for a request; it was not accepted."""

    error_code = ErrorCode.MESSAGE_TOO_LARGE

    def __init__(self, size: int, limit: int, setting: str) -> None:
        self.size = size
        self.limit = limit
        super().__init__(f"the record makes a batch of {size} bytes; {setting} allows {limit}")

    @classmethod
    def check(cls, size: int, max_request_size: int, buffer_memory: int) -> RecordTooLarge | None:
        """The error for a record that makes a batch of `size`, if there is one."""
        if size > max_request_size:
            return cls(size, max_request_size, "max_request_size")
        return cls(size, buffer_memory, "buffer_memory") if size > buffer_memory else None


class SerializationFailed(ClientError):
    """A serializer raised, which is the cause, or did not return bytes; the record was not accepted."""
