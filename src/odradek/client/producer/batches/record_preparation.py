"""From the arguments of `send` to bytes: interceptors, serializers, the partition, checked headers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from odradek.client.config import check_function, check_interceptors
from odradek.client.producer.batches.accumulator import CHOOSE, TopicQueues
from odradek.client.producer.batches.batch import RecordMetadata
from odradek.client.producer.batches.partitioners import Partitioner
from odradek.client.producer.errors import SerializationFailed
from odradek.common.c_clocks import wall_clock_ms

Key = TypeVar("Key")
Value = TypeVar("Value")
Plain_contra = TypeVar("Plain_contra", contravariant=True)

HeadersIn = Mapping[str, bytes | None] | Iterable[tuple[str, bytes | None]]
Headers = tuple[tuple[str, bytes | None], ...]


class Serializer(Protocol[Plain_contra]):
    """Turns a key or a value into bytes; not called for None, which stays None."""

    def __call__(self, serialized: Plain_contra, /) -> bytes | None:
        """The bytes."""


@dataclass(frozen=True, slots=True)
class ProducerRecord(Generic[Key, Value]):
    """A record as it was given to `send`."""

    topic: str
    value: Value | None = None
    key: Key | None = None
    partition: int | None = None
    headers: HeadersIn | None = None
    timestamp: int | None = None


class Interceptor(Generic[Key, Value]):
    """Called for every record before it is serialized and when it is done. Override what you need."""

    def on_send(self, record: ProducerRecord[Key, Value]) -> ProducerRecord[Key, Value]:
        """The record to send in place of this one."""
        return record

    def on_acknowledgement(self, error: BaseException | None, metadata: RecordMetadata) -> None:
        """A record is delivered or has failed. Called on the producer's thread: be quick."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A record as it goes into a batch."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None
    timestamp_ms: int


class Preparation(Generic[Key, Value]):
    """The steps from a user's record to bytes. Called in the thread that sends."""

    def __init__(
        self,
        key_serializer: Serializer[Key] | None,
        value_serializer: Serializer[Value] | None,
        partitioner: Partitioner | None,
        interceptors: Sequence[Interceptor[Key, Value]],
    ) -> None:
        check_function("key_serializer", key_serializer)
        check_function("value_serializer", value_serializer)
        check_function("partitioner", partitioner)
        check_interceptors(interceptors, "on_send", "on_acknowledgement")
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._partitioner = partitioner
        self.interceptors = tuple(interceptors)

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to do for a record of bytes without headers."""
        return not (self._key_serializer or self._value_serializer or self._partitioner or self.interceptors)

    def intercepted(self, record: ProducerRecord[Key, Value]) -> ProducerRecord[Key, Value]:
        """The record after all interceptors."""
        for interceptor in self.interceptors:
            record = interceptor.on_send(record)
        return record

    def ready(self, record: ProducerRecord[Key, Value], queues: TopicQueues) -> Ready:
        """The record as bytes with its partition, or CHOOSE."""
        key = _serialized("key", record.key, self._key_serializer)
        value = _serialized("value", record.value, self._value_serializer)
        partition = CHOOSE if record.partition is None else record.partition
        if (
            type(partition) is not int
            or partition < CHOOSE
            or (record.partition is not None and partition < 0)
        ):
            raise ValueError(f"partition {record.partition!r} is not a number from 0 on")
        if partition == CHOOSE and self._partitioner is not None:
            partition = self._partitioner(record.topic, key, value, len(queues.queues), queues.available)
        headers = None if record.headers is None else checked_headers(record.headers)
        timestamp_ms = wall_clock_ms() if record.timestamp is None else record.timestamp
        if type(timestamp_ms) is not int or timestamp_ms < 0:
            raise ValueError(f"timestamp {record.timestamp!r} is not a number of milliseconds since 1970")
        return Ready(record.topic, partition, key, value, headers, timestamp_ms)

    def with_interceptors(
        self, on_delivery: Callable[[BaseException | None, RecordMetadata], object] | None
    ) -> Callable[[BaseException | None, RecordMetadata], object] | None:
        """The callback of a record, which calls the interceptors as well."""
        if not self.interceptors:
            return on_delivery

        def call_all(error: BaseException | None, metadata: RecordMetadata) -> None:
            for interceptor in self.interceptors:
                interceptor.on_acknowledgement(error, metadata)
            if on_delivery is not None:
                on_delivery(error, metadata)

        return call_all


def checked_headers(headers: HeadersIn) -> Headers:
    """Headers as pairs that cannot change while they are encoded."""
    pairs = tuple(headers.items()) if isinstance(headers, Mapping) else tuple(tuple(pair) for pair in headers)
    for pair in pairs:
        if len(pair) != 2 or type(pair[0]) is not str or not (pair[1] is None or type(pair[1]) is bytes):
            raise TypeError(f"a header is a pair of str and bytes (or None), not {pair!r}")
    return pairs  # type: ignore[return-value]


def _serialized(what: str, serialized: Any, serializer: Serializer[Any] | None) -> bytes | None:
    if serialized is None:
        return None
    if serializer is not None:
        try:
            serialized = serializer(serialized)
        except Exception as error:
            raise SerializationFailed(
                f"the {what} serializer raised {type(error).__name__}: {error}"
            ) from error
    if serialized is None or type(serialized) is bytes:
        return serialized
    if isinstance(serialized, bytes | bytearray | memoryview):
        return bytes(serialized)
    if serializer is not None:
        raise SerializationFailed(f"the {what} serializer returned {type(serialized).__name__}, not bytes")
    raise TypeError(
        f"the {what} is {type(serialized).__name__}, not bytes: encode it, or give {what}_serializer=…"
    )
