"""Types of record_index.py for its callers; inside, the annotations are C's."""

Buffer = bytes | bytearray | memoryview

def index_records(
    buffer: Buffer, start: int, end: int, count: int, table: memoryview
) -> tuple[int, int, int]: ...
def find_run(batches: memoryview, first: int, count: int, max_rows: int) -> tuple[int, int]: ...
def index_run(
    buffer: Buffer, batches: memoryview, first: int, end: int, table: memoryview
) -> tuple[int, int]: ...
