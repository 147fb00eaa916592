"""Types of kernels.py for its callers; inside, the annotations are C's."""

Buffer = bytes | bytearray | memoryview

IS_COMPILED: bool

def siphash(key: Buffer, secret_low: int, secret_high: int) -> tuple[int, int]: ...
def digest_records(
    buffer: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    tombstones_expired: bool,
    secret_low: int,
    secret_high: int,
    rows: memoryview,
    digests: memoryview,
) -> tuple[int, int]: ...
def digest_batches(
    buffer: Buffer,
    batches: memoryview,
    first: int,
    stop: int,
    verdicts: Buffer,
    now_ms: int,
    secret_low: int,
    secret_high: int,
    rows: memoryview,
    digests: memoryview,
) -> tuple[int, int, int, int]: ...
def put_offsets(
    entries: memoryview,
    slots: int,
    size: int,
    max_size: int,
    rows: memoryview,
    digests: memoryview,
    count: int,
    start_offset: int,
) -> tuple[int, int]: ...
def find_offset(entries: memoryview, slots: int, digest_low: int, digest_high: int) -> int: ...
def choose_survivors(
    entries: memoryview,
    slots: int,
    rows: memoryview,
    digests: memoryview,
    count: int,
    latest_offset: int,
) -> int: ...
