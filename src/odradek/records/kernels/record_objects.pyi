"""Types of record_objects.py for its callers; inside, the annotations are C's."""

Buffer = bytes | bytearray | memoryview

class Record:
    def __init__(
        self,
        offset: int,
        timestamp_ms: int,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> None: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...

def read_records(
    buffer: Buffer,
    start: int,
    end: int,
    count: int,
    base_offset: int,
    timestamp_ms: int,
    is_log_append_time: bool,
    records: list[Record],
) -> tuple[int, int, int]: ...
