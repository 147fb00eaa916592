"""Types of columns.py for its callers; inside, the annotations are C's."""

from collections.abc import Callable
from typing import Any

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
    def encode(
        self, start: int, end: int, size: int, allocate: Callable[[int], Any] = ...
    ) -> tuple[Any, int]: ...
