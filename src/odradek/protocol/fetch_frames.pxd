# C types of fetch_frames.py.

cimport cython

cdef long long _FIRST_VERSION, _LAST_VERSION, _FLEXIBLE_FROM, _TOPIC_IDS_FROM, _LAST_WITH_REPLICA_ID
cdef long long _READ_COMMITTED, _NULL, _NO_REPLICA
cdef Py_ssize_t _MAX_PARTITIONS, _SHORTEST, _TOPIC_ID_BYTES, _START_BYTES, _ROW_BYTES, _COPIED_BYTES


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
    cdef const unsigned char *octets
    cdef Py_ssize_t position
    cdef Py_ssize_t end
    cdef bint is_flexible
    cdef bint is_bad

    @cython.locals(start=Py_ssize_t)
    cdef Py_ssize_t take(self, Py_ssize_t size) noexcept
    @cython.locals(number="long long")
    cdef long long int32(self) noexcept
    @cython.locals(octet="unsigned char", found="long long", shift=int)
    cdef long long varint(self) noexcept
    @cython.locals(found="long long")
    cdef Py_ssize_t length(self, int size) noexcept
    cdef void pass_tags(self) noexcept
    @cython.locals(start=Py_ssize_t, at=Py_ssize_t)
    cdef str ascii(self, Py_ssize_t length)
    @cython.locals(start=Py_ssize_t)
    cdef bytes copy(self, Py_ssize_t length)


@cython.locals(
    reader=FrameReader, request=FetchFrame, api_key="long long", version="long long", correlation_id="long long",
    client_id_length="long long", max_wait_ms="long long", min_bytes="long long", max_bytes="long long",
    isolation_level="long long", session_id="long long", session_epoch="long long",
)
cpdef read_fetch(frame)

@cython.locals(room=Py_ssize_t, partition_count=Py_ssize_t, partitions=list)
cdef _read_topics(FrameReader reader, FetchFrame request)

@cython.locals(room=Py_ssize_t, partition_count=Py_ssize_t)
cdef _read_forgotten(FrameReader reader, FetchFrame request)

cdef _read_topic(FrameReader reader, long long version)

@cython.locals(
    index="long long", leader_epoch="long long", offset="long long", last_fetched_epoch="long long",
    max_bytes="long long",
)
cdef WantedRecords _read_partition(FrameReader reader)

@cython.locals(
    is_flexible=bint, names=list, answer=bytearray, octets="unsigned char *", parts=list, rows=list, name=bytes,
    row=FoundRecords, start=Py_ssize_t, position=Py_ssize_t, record_bytes=Py_ssize_t,
)
cpdef list answer_fetch(FetchFrame request, long long session_id, dict told)

cdef _around(bytearray answer, unsigned char *octets, Py_ssize_t start, Py_ssize_t end)

@cython.locals(size=Py_ssize_t, name=bytes, rows=list, row=FoundRecords, record_bytes=Py_ssize_t)
cdef Py_ssize_t _size_around_files(bint is_flexible, list names, dict told) except -1

@cython.locals(size=Py_ssize_t, rows=list, row=FoundRecords)
cdef Py_ssize_t _size_of_files(dict told) except -1

@cython.locals(aborted_count="long long")
cdef Py_ssize_t _put_row(
    unsigned char *octets, Py_ssize_t position, FoundRecords row, long long isolation_level, bint is_flexible
) except -1

cdef bytes _topic_bytes(topic, bint is_flexible)

@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _length_size(long long number, bint is_flexible) noexcept

cdef Py_ssize_t _put_length(
    unsigned char *octets, Py_ssize_t position, long long number, bint is_flexible
) noexcept
