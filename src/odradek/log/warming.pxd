# C types of warming.py.

cimport cython

from odradek.log.log_tail cimport LogTail
from odradek.log.segment_reads cimport SegmentReads
from odradek.log.warmth cimport LogEndMark, Warmth


@cython.locals(end_offset="long long", active=SegmentReads, warmth=Warmth)
cpdef bint is_warm(LogTail log, long long offset, long long max_bytes) except -1
