"""Types of record_check.py for its callers; inside, the annotations are C's."""

Buffer = bytes | bytearray | memoryview

IS_COMPILED: bool

def wrapping_sum(base: int, delta: int) -> int: ...
def wrapping_difference(number: int, base: int) -> int: ...
def find_bytes(buffer: Buffer, position: int, end: int, row: memoryview, at: int) -> int: ...
def index_record(buffer: Buffer, position: int, limit: int, row: memoryview, at: int) -> int: ...
def check_bounds(size: int, start: int, end: int) -> None: ...
def new_bytearray(size: int) -> bytearray: ...
def check_records_into(
    buffer: memoryview,
    start: int,
    end: int,
    count: int,
    last_offset_delta: int,
    is_strict: bool,
    requires_key: bool,
    untimed_delta: int,
    row: list[int],
) -> int: ...
def check_records(
    buffer: Buffer,
    start: int,
    end: int,
    count: int,
    last_offset_delta: int,
    is_strict: bool,
    requires_key: bool,
    untimed_delta: int,
) -> tuple[int, int, int, int, int]: ...
