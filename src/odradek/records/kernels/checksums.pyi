"""Types of checksums.py for its callers; inside, the annotations are C's."""

IS_COMPILED: bool

def count_whole(buffer: bytes | bytearray | memoryview, batches: memoryview, count: int) -> int: ...
