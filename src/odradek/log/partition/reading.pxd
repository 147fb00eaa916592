# C types of reading.py.

cimport cython

from odradek.log.partition.log_appender cimport LogAppender
from odradek.log.segment.segment_reader cimport BatchSpan, Boundary, SegmentReader
from odradek.log.segment.segments cimport Segments


@cython.final
cdef class FetchData:
    cdef readonly BatchRun run
    cdef readonly long long high_watermark
    cdef readonly long long last_stable_offset
    cdef readonly long long log_start_offset
    cdef readonly long long log_end_offset
    cdef readonly tuple aborted


@cython.final
cdef class LogEnd:
    cdef readonly SegmentReader active
    cdef readonly long long active_size
    cdef readonly long long offset


@cython.final
cdef class BatchRun:
    cdef readonly SegmentReader segment
    cdef readonly long long start
    cdef readonly long long end
    cdef readonly long long upper_offset

    cpdef range(self)


@cython.locals(
    active=SegmentReader, end=LogEnd, run=BatchRun, limit="long long", high_watermark="long long",
    stable_offset="long long", aborted=tuple,
)
cpdef FetchData read_log(LogAppender log, long long offset, long long max_bytes, isolation, bint min_one_batch)

@cython.locals(
    segment=SegmentReader, following=SegmentReader, start="long long", size="long long", next_offset="long long",
    upper_offset="long long", stop=Boundary, span=BatchSpan,
)
cpdef BatchRun find_batches(
    Segments segments, LogEnd end, long long offset, long long limit, long long max_bytes, bint min_one_batch
)

@cython.locals(segment=SegmentReader)
cdef tuple _find(Segments segments, long long offset)

@cython.locals(end=Boundary, span=BatchSpan)
cdef Boundary _end_of_read(
    SegmentReader segment, long long start, long long limit, long long max_bytes, bint min_one_batch
)

cpdef tuple aborted_between(Segments segments, long long offset, long long upper_offset)
