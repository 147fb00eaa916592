# C types of purgatory.py.

cimport cython

from odradek.broker.requests.waiting.timeouts cimport Timeout, Timeouts
from odradek.log.partition.log_appender cimport LogAppender
from odradek.replication.partition cimport Partition


cdef class Waiter(Timeout):
    cdef public object connection
    cdef public tuple keys

    cpdef bint try_complete(self) except -1
    cpdef on_timeout(self)


@cython.final
cdef class Purgatory:
    cdef object _loop
    cdef readonly dict watching
    cdef set _woken
    cdef Timeouts _timeouts

    @cython.locals(watching=dict, waiters=dict)
    cpdef add(self, Waiter waiter, tuple keys, long long timeout_ms)
    cpdef wake(self, key)
    @cython.locals(watching=dict, waiters=dict)
    cpdef remove(self, Waiter waiter)


@cython.final
@cython.freelist(64)
cdef class CommitWait:
    cdef readonly Partition partition
    cdef readonly long long last_offset
    cdef readonly long long led_since
    cdef readonly CommitWaiter waiter
    cdef readonly object row
    cdef CommitWait _previous
    cdef CommitWait _next


cdef class CommitWaiter(Timeout):
    cdef public object connection
    cdef readonly list waits
    cdef public long long pending

    cpdef wait_for(self, Partition partition, long long last_offset, long long led_since, row=*)
    cpdef on_outcome(self, CommitWait wait, error_code)
    cpdef on_complete(self)


@cython.final
@cython.freelist(8)
cdef class PartitionWaits:
    cdef readonly Partition partition
    cdef readonly long long led_since
    cdef Partition woken_by
    cdef CommitWait first
    cdef CommitWait last

    @cython.locals(previous=CommitWait, following=CommitWait)
    cpdef add(self, CommitWait wait)
    @cython.locals(previous=CommitWait, following=CommitWait)
    cpdef remove(self, CommitWait wait)


@cython.final
cdef class CommitPurgatory:
    cdef object _loop
    cdef bint _until_flushed
    cdef readonly dict watching
    cdef list _woken
    cdef Timeouts _timeouts

    @cython.locals(wait=CommitWait)
    cpdef add(self, CommitWaiter waiter, long long timeout_ms)
    @cython.locals(queue=PartitionWaits, partition=Partition)
    cdef _watch(self, CommitWait wait)
    @cython.locals(queue=PartitionWaits)
    cpdef wake(self, Partition partition)
    @cython.locals(woken=list, queue=PartitionWaits, partition=Partition)
    cpdef run_woken(self)
    @cython.locals(log=LogAppender, end_offset="long long", wait=CommitWait)
    cdef _complete_committed(self, PartitionWaits queue, Partition partition)
    cdef _drop_if_empty(self, key, PartitionWaits queue)
    @cython.locals(wait=CommitWait)
    cdef _fail(self, key, PartitionWaits queue)
    @cython.locals(waiter=CommitWaiter)
    cdef _settle(self, CommitWait wait, error_code)
