# C types of short_reads.py.

cimport cython

from odradek.log.partition.log_appender cimport LogAppender
from odradek.log.partition.reading cimport BatchRun, LogEnd
from odradek.log.segment.segment_reader cimport SegmentReader
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
    @cython.locals(log=LogAppender, epoch="long long", offset="long long", high_watermark="long long")
    cdef FoundRecords read(self, Partition partition, asked)
    @cython.locals(
        request=FetchFrame, active=SegmentReader, end=LogEnd, run=BatchRun, limit="long long", size="long long",
    )
    cdef _find(self, LogAppender log, long long offset, long long max_bytes)
    cdef bint is_enough(self) except -1
    @cython.locals(traffic=TopicTraffic)
    cdef count(self)
