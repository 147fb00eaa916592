# C types of reading.py.

cimport cython

from odradek.log.segment_reads cimport SegmentReads
from odradek.log.segments cimport Segments


@cython.locals(
    segment=SegmentReads, following=SegmentReads, start="long long", size="long long", next_offset="long long",
    upper_offset="long long",
)
cpdef find_batches(
    Segments segments, end, long long offset, long long limit, long long max_bytes, bint min_one_batch
)

@cython.locals(segment=SegmentReads)
cdef _find(Segments segments, long long offset)

cdef _end_of_read(SegmentReads segment, long long start, long long limit, long long max_bytes, bint min_one_batch)
