# C types of produce.py.

cimport cython

from odradek.broker.requests.context cimport RequestContext
from odradek.broker.requests.waiting.purgatory cimport CommitWait, CommitWaiter
from odradek.log.partition.log_appender cimport AppendInfo
from odradek.replication.partition cimport Partition

cdef long long _V2_FROM, _STEPS_PER_YIELD, _TOPIC_IDS_FROM, _ZSTD_FROM, _ALL_IN_SYNC, _ATTRIBUTES_AT, _TRANSACTIONAL, _CODEC_MASK
cdef long long _ZSTD
cdef double _MAX_SECONDS
cdef Py_ssize_t _HEADER_SIZE, _PRODUCER_AT
cdef object _RESPONSE, _TOPIC, _ROW, _INTERNAL_TOPICS, _WRITE, _TOPIC_TYPE, _NONE, _NOT_LEADER


@cython.locals(count=Py_ssize_t)
cdef Py_ssize_t _partition_count(request) except -1


@cython.final
cdef class Appending:
    cdef readonly RequestContext context
    cdef object services
    cdef readonly object request
    cdef object response
    cdef public double deadline
    cdef long long now_ms
    cdef long long _acks
    cdef object _name
    cdef object _topic
    cdef object _refusal
    cdef object _refused
    cdef list _rows
    cdef DelayedProduce _waiter
    cdef readonly list unverified

    @cython.locals(context=RequestContext)
    cpdef begin_topic(self, topic)
    cpdef append(self, part)
    cdef _note_refusal(self, part, row)
    @cython.locals(acks="long long", partition=Partition, attributes="long long")
    cdef _append(self, part, row)
    @cython.locals(acks="long long", info=AppendInfo)
    cdef _append_to(self, Partition partition, records, row)
    @cython.locals(
        raw="const unsigned char *", producer_id="long long", producer_epoch="long long", sequence="long long",
    )
    cdef bint _begins_transaction(self, Partition partition, records, row) except -1
    cdef _wait_for(self, Partition partition, long long last_offset, row)
    cpdef answer(self)


cdef class DelayedProduce(CommitWaiter):
    cdef RequestContext _context
    cdef object _response

    cpdef on_outcome(self, CommitWait wait, error_code)
    cpdef on_complete(self)
