# C types of fetch.py.

cimport cython

from odradek.broker.requests.context cimport RequestContext
from odradek.broker.requests.fetch.fetch_sessions cimport FetchPartition, FetchSession
from odradek.broker.requests.waiting.purgatory cimport Purgatory, Waiter
from odradek.log.partition.log_appender cimport LogAppender
from odradek.log.partition.reading cimport BatchRun, FetchData
from odradek.log.segment.segment_reader cimport SegmentReader
from odradek.replication.partition cimport Partition

cdef long long _STEPS_PER_YIELD, _TOPIC_IDS_FROM, _REPLICA_STATE_FROM, _ANY_REPLICA_FROM, _SMALL_FILE_BYTES
cdef object _RESPONSE, _TOPIC, _ROW, _LOG_END, _UNCOMMITTED, _COMMITTED, _READ, _TOPIC_TYPE


cdef class DelayedFetch(Waiter):
    cdef readonly RequestContext context
    cdef object services
    cdef readonly FetchSession session
    cdef readonly bint is_incremental
    cdef long long min_bytes
    cdef long long max_bytes
    cdef long long max_wait_ms
    cdef readonly long long replica_id
    cdef long long replica_epoch
    cdef str rack_id
    cdef object isolation
    cdef dict _partitions
    cdef dict _topic_names
    cdef dict _allowed
    cdef list _uncached
    cdef object _leader_throttle
    cdef readonly list rows
    cdef readonly long long bytes_read
    cdef readonly bint has_errors
    cdef readonly long long throttled_bytes

    cdef _begin(self)
    @cython.locals(uncached=list)
    cpdef answer_or_wait(self)
    cdef _answer_or_park(self)
    @cython.locals(wanted=FetchPartition)
    cpdef read(self)
    cpdef bint is_enough(self) except -1
    cpdef bint try_complete(self) except -1
    cpdef on_timeout(self)
    @cython.locals(wanted=FetchPartition, partition=Partition, keys=list)
    cdef tuple _keys(self)
    @cython.locals(builder=FetchResponseBuilder, wanted=FetchPartition)
    cdef _response(self)
    cdef _read_one(self, key, FetchPartition wanted)
    @cython.locals(log=LogAppender, offset="long long", max_bytes="long long", fetched=FetchData, aborted=tuple, is_throttled=bint, is_held_back=bint)
    cdef _read_into(self, row, Partition partition, FetchPartition wanted)
    cdef bint _prefers_other_replica(self, row, Partition partition, FetchPartition wanted) except -1
    @cython.locals(log=LogAppender, epoch="long long", offset="long long")
    cdef bint _diverges(self, row, Partition partition, FetchPartition wanted) except -1


@cython.final
cdef class FetchResponseBuilder:
    cdef DelayedFetch _fetching
    cdef dict _topics
    cdef list _sent

    @cython.locals(size=Py_ssize_t)
    cdef add(self, key, FetchPartition wanted, row)
    cdef response(self)


@cython.locals(size="long long")
cdef _records(BatchRun run)
