# C types of short_fetch.py.

cimport cython

from odradek.broker.requests.fetch_sessions cimport FetchSession, WantedPartition
from odradek.broker.requests.late_answers cimport LateAnswer
from odradek.broker.requests.purgatory cimport Purgatory
from odradek.broker.requests.short_reads cimport Reads
from odradek.protocol.fetch_frames cimport FetchFrame, FoundRecords, WantedRecords, WantedTopic
from odradek.replication.partition cimport Partition


@cython.locals(request=FetchFrame, session=FetchSession)
cpdef answer_shortly(services, frame)

@cython.locals(asked=dict, session=FetchSession, fetch=ShortFetch, found=list)
cdef _answer_once(services, FetchFrame request)

@cython.locals(changed=dict, wanted=dict, fetch=ShortFetch, found=list, known=WantedPartition)
cdef _answer_in_session(services, FetchFrame request, FetchSession session)


cdef class ShortFetch(LateAnswer):
    cdef object services
    cdef FetchFrame request
    cdef FetchSession session
    cdef bint is_incremental
    cdef Reads _reads

    @cython.locals(reads=Reads, found=list, known=WantedPartition, row=FoundRecords)
    cdef list read(self, dict wanted, dict changed)
    cdef answer_or_wait(self, list found)
    @cython.locals(told=dict, sent=list, known=WantedPartition, row=FoundRecords, has_records=bint)
    cdef _parts(self, list found)
    @cython.locals(keys=list, partition=Partition, purgatory=Purgatory)
    cpdef park(self)
    @cython.locals(found=list)
    cpdef bint complete(self, bint is_over) except -1
    cdef bint _complete_at_length(self, bint is_over) except -1


@cython.locals(asked=dict, topic=WantedTopic, one=WantedRecords)
cdef dict _asked(FetchFrame request)

@cython.locals(topic=WantedTopic, count=Py_ssize_t)
cdef Py_ssize_t _partition_count(FetchFrame request) except -1

@cython.locals(added=list)
cdef dict _wanted_now(dict wanted, dict changed, list forgotten)
