"""Types of scan_kernels.py for its callers; inside, the annotations are C's."""

from array import array
from enum import IntEnum

IS_COMPILED: bool

class ScanProgress(IntEnum):
    LAST_POSITION = 0
    GREATEST_MS = 1
    GREATEST_OFFSET = 2
    LATEST_ENTRY_MS = 3
    RECORD_COUNT = 4
    LEADER_EPOCH = 5
    IS_LATER_EPOCH = 6

def count_plain(
    batches: memoryview, count: int, next_offset: int, leader_epoch: int, last_offset_limit: int
) -> int: ...
def index_batches(
    batches: memoryview,
    count: int,
    start: int,
    base_offset: int,
    interval_bytes: int,
    progress: array[int],
) -> tuple[memoryview, memoryview]: ...
