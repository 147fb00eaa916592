# C types of read_ahead.py.

cimport cython

from odradek.log.partition.log_appender cimport LogAppender
from odradek.log.segment.segment_reader cimport SegmentReader
from odradek.log.files.page_cache_state cimport LogEndMark, PageCacheState


@cython.locals(end_offset="long long", active=SegmentReader, page_cache=PageCacheState)
cpdef bint is_read_cached(LogAppender log, long long offset, long long max_bytes) except -1
