# C types of fetch_frames.py.

cimport cython

cdef long long _FIRST_VERSION, _LAST_VERSION, _FLEXIBLE_FROM, _TOPIC_IDS_FROM, _LAST_WITH_REPLICA_ID
cdef long long _MAX_PARTITIONS, _READ_COMMITTED


@cython.final
cdef class WantedRecords:
    cdef readonly long long partition
    cdef readonly long long current_leader_epoch
    cdef readonly long long fetch_offset
    cdef readonly long long last_fetched_epoch
    cdef readonly long long partition_max_bytes


@cython.final
cdef class WantedTopic:
    cdef readonly object topic
    cdef readonly list partitions


@cython.final
cdef class FetchFrame:
    cdef readonly long long version
    cdef readonly long long correlation_id
    cdef readonly object client_id
    cdef readonly long long max_wait_ms
    cdef readonly long long min_bytes
    cdef readonly long long max_bytes
    cdef readonly long long isolation_level
    cdef readonly long long session_id
    cdef readonly long long session_epoch
    cdef readonly list topics
    cdef readonly list forgotten


@cython.final
cdef class FoundRecords:
    cdef readonly long long partition
    cdef readonly long long high_watermark
    cdef readonly long long last_stable_offset
    cdef readonly long long log_start_offset
    cdef readonly object records


@cython.final
cdef class FrameReader:
    cdef object frame
    cdef const unsigned char[::1] octets
    cdef Py_ssize_t position
    cdef Py_ssize_t end
    cdef bint is_flexible
    cdef bint is_bad

    @cython.locals(start=Py_ssize_t)
    cdef Py_ssize_t take(self, long long size) noexcept
    @cython.locals(start=Py_ssize_t, at=Py_ssize_t, found="long long")
    cdef long long number(self, Py_ssize_t size) noexcept
    @cython.locals(start=Py_ssize_t, found="long long", shift=int)
    cdef long long varint(self) noexcept
    @cython.locals(found="long long")
    cdef long long length(self, Py_ssize_t size) noexcept
    cdef pass_tags(self)
    @cython.locals(start=Py_ssize_t, at=Py_ssize_t)
    cdef pass_ascii(self, long long length)
    @cython.locals(start=Py_ssize_t)
    cdef ascii(self, long long length)
    @cython.locals(start=Py_ssize_t)
    cdef bytes copy(self, long long length)


@cython.locals(
    reader=FrameReader, request=FetchFrame, api_key="long long", version="long long", correlation_id="long long",
    client_id_length="long long",
)
cpdef read_fetch(frame)

@cython.locals(room="long long", partition_count="long long", partitions=list)
cdef _read_topics(FrameReader reader, FetchFrame request)

@cython.locals(room="long long", partition_count="long long")
cdef _read_forgotten(FrameReader reader, FetchFrame request)

cdef _read_topic(FrameReader reader, long long version)

@cython.locals(
    index="long long", leader_epoch="long long", offset="long long", last_fetched_epoch="long long",
    max_bytes="long long",
)
cdef WantedRecords _read_partition(FrameReader reader)

@cython.locals(
    is_flexible=bint, tags=bytes, aborted=bytes, before_records=bytes, between=list, parts=list, rows=list,
    row=FoundRecords, size=Py_ssize_t, record_bytes=Py_ssize_t, index=Py_ssize_t,
)
cpdef list answer_fetch(FetchFrame request, long long session_id, topics)

cdef bytes _topic_bytes(topic, bint is_flexible)

@cython.locals(found=bytes)
cdef bytes _length(long long number, bint is_flexible, int size)
