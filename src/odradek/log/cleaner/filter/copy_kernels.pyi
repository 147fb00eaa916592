"""Types of copy_kernels.py for its callers; inside, the annotations are C's."""

Buffer = bytes | bytearray | memoryview

IS_COMPILED: bool

def sum_up(rows: memoryview, count: int) -> tuple[int, bool, int]: ...
def copy_survivors(
    buffer: Buffer, rows: memoryview, count: int, timestamp_shift: int, out: memoryview | bytearray, at: int
) -> int: ...
def write_survivors(
    buffer: Buffer,
    batches: memoryview,
    first: int,
    stop: int,
    verdicts: Buffer,
    rows: memoryview,
    kept_offsets: memoryview,
    latest_offset: int,
    delete_horizon_ms: int,
    out: memoryview | bytearray,
    at: int,
    changed: memoryview,
    counters: memoryview,
) -> int: ...
