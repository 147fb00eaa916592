"""Types of columns.py for its callers; inside, the annotations are C's."""

from typing import Any

from odradek.records.layout import Column

Buffer = bytes | bytearray | memoryview
BytesBuffers = tuple[int, bytearray, bytearray, bytearray]

def measure(source: Buffer, table: memoryview, count: int) -> tuple[int, int, int, int, int]: ...
def take_numbers(
    table: memoryview, count: int, column: Column, base: int, out: memoryview, row: int
) -> None: ...

class BytesSink:
    def __init__(self, count: int, size: int) -> None: ...
    def buffers(self) -> BytesBuffers: ...
    def take(self, source: Buffer, table: memoryview, count: int, column: Column) -> None: ...

class HeadersSink:
    def __init__(self, count: int, headers: int, key_bytes: int, value_bytes: int) -> None: ...
    def buffers(self) -> tuple[bytearray, int, BytesBuffers, BytesBuffers]: ...
    def take(self, source: Buffer, table: memoryview, count: int) -> None: ...

class BytesSource:
    def __init__(self, validity: Any, offsets: Any, content: Any, first: int) -> None: ...

def partition_keys(
    keys: BytesSource, count: int, partitions: int, without_key: int, out: memoryview
) -> None: ...

class RecordSource:
    count: int
    def __init__(
        self,
        keys: BytesSource,
        values: BytesSource,
        timestamps_ms: Any,
        offsets: Any,
        header_offsets: Any,
        header_keys: BytesSource,
        header_values: BytesSource,
    ) -> None: ...
    def fit(self, start: int, max_bytes: int) -> tuple[int, int]: ...
    def encode(self, start: int, end: int, size: int) -> tuple[bytearray, int]: ...
