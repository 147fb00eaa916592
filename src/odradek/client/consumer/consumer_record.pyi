"""Types of consumer_record.py for its callers; inside, the annotations are C's."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

class ConsumerRecord(Generic[Key, Value]):
    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        key: Key | None = None,
        value: Value | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
        timestamp_type: int = 0,
        leader_epoch: int = -1,
    ) -> None: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> Key | None: ...
    @property
    def value(self) -> Value | None: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...
    @property
    def timestamp_type(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...

class BatchRows:
    def __init__(
        self,
        topic: str,
        partition: int,
        source: Any,
        table: memoryview,
        base_offset: int,
        timestamp_ms: int,
        timestamp_type: int,
        leader_epoch: int,
    ) -> None: ...
    def append_to(
        self,
        start: int,
        end: int,
        key_deserializer: Callable[[bytes], Any] | None,
        value_deserializer: Callable[[bytes], Any] | None,
        records: list[Any],
    ) -> None: ...
    def offset_at(self, row: int) -> int: ...
    def first_at(self, offset: int, count: int) -> int: ...
