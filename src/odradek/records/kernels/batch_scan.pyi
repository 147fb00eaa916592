"""Types of batch_scan.py for its callers; inside, the annotations are C's."""

from odradek.records.kernels.layout import BatchScan

Buffer = bytes | bytearray | memoryview

def scan_batches(buffer: Buffer, start: int, end: int, max_batches: int = 8192) -> BatchScan: ...
