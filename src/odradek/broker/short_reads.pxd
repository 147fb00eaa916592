# C types of short_reads.py.

cimport cython

from odradek.log.log_tail cimport LogTail
from odradek.log.reading cimport BatchRun, LogEnd
from odradek.log.segment_reads cimport SegmentReads
from odradek.metrics.counters cimport TopicTraffic
from odradek.protocol.fetch_frames cimport FetchFrame, FoundRecords
from odradek.replication.partition cimport Partition


@cython.final
cdef class Reads:
    cdef readonly object services
    cdef FetchFrame request
    cdef dict _partitions
    cdef dict _topic_names
    cdef long long _max_bytes
    cdef readonly long long bytes_read
    cdef list _sent

    cdef Partition partition(self, tuple key)
    @cython.locals(log=LogTail, epoch="long long", offset="long long", high_watermark="long long")
    cdef FoundRecords read(self, Partition partition, asked)
    @cython.locals(
        request=FetchFrame, active=SegmentReads, end=LogEnd, run=BatchRun, limit="long long", size="long long",
    )
    cdef _find(self, LogTail log, long long offset, long long max_bytes)
    cdef bint is_enough(self) except -1
    @cython.locals(traffic=TopicTraffic)
    cdef count(self)
