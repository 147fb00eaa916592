# C types of short_fetch.py.

cimport cython

from odradek.log.log_tail cimport LogTail
from odradek.protocol.fetch_frames cimport FetchFrame, FoundRecords, WantedRecords, WantedTopic
from odradek.replication.partition cimport Partition


@cython.locals(request=FetchFrame)
cpdef answer_shortly(services, frame)


@cython.final
cdef class Reads:
    cdef readonly object services
    cdef FetchFrame request
    cdef dict _partitions
    cdef readonly long long bytes_read
    cdef list _sent

    cdef topic_name(self, topic)
    @cython.locals(
        partition=Partition, log=LogTail, epoch="long long", offset="long long", high_watermark="long long"
    )
    cdef FoundRecords read(self, topic, asked)
    @cython.locals(request=FetchFrame, limit="long long")
    cdef _find(self, LogTail log, long long offset, long long max_bytes)
    cdef bint is_enough(self) except -1
    cdef count(self)


@cython.locals(topic=WantedTopic, asked=WantedRecords, row=FoundRecords, told=dict, rows=dict)
cdef _answer_once(Reads reads, FetchFrame request)

@cython.locals(topic=WantedTopic, row=FoundRecords, wanted=dict, changed=dict, found=list, told=dict)
cdef _answer_in_session(Reads reads, FetchFrame request, session)

@cython.locals(added=list)
cdef dict _wanted_now(dict wanted, dict changed, list forgotten)

@cython.locals(row=FoundRecords, told=dict)
cdef dict _news(list found)
