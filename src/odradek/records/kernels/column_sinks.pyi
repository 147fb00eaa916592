"""Types of column_sinks.py for its callers; inside, the annotations are C's."""

from collections.abc import Callable
from typing import Any

Buffer = bytes | bytearray | memoryview
BytesBuffers = tuple[int, Any, Any, Any]

class RecordsSink:
    def __init__(self, allocate: Callable[[int], Any] = ...) -> None: ...
    def __len__(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def number_buffers(self) -> tuple[Any, Any, Any]: ...
    @property
    def header_buffers(self) -> tuple[int, Any, BytesBuffers, BytesBuffers]: ...
    @property
    def bytes_buffers(self) -> tuple[BytesBuffers, BytesBuffers]: ...
    def reserve(self, count: int, size: int) -> None: ...
    def append_batch(
        self,
        buffer: Buffer,
        start: int,
        end: int,
        count: int,
        base_offset: int,
        timestamp_ms: int,
        is_log_append_time: bool,
        from_offset: int,
    ) -> tuple[int, int, int]: ...
    def append_run(
        self, buffer: Buffer, batches: memoryview, first: int, end: int, from_offset: int
    ) -> int: ...
