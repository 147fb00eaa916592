# C types of produce_frames.py.

cimport cython

cdef long long _FIRST_VERSION, _LAST_VERSION, _TOPIC_IDS_FROM, _BAD
cdef Py_ssize_t _CLIENT_ID_POSITION, _TOPIC_ID_BYTES, _SHORTEST, _ATTRIBUTES_POSITION, _MOST_BATCHES
cdef Py_ssize_t _START_BYTES, _ROW_BYTES, _AFTER_TOPIC_BYTES, _END_BYTES
cdef int _TRANSACTIONAL_FLAG, _NO_RECORD_ERRORS


@cython.final
@cython.freelist(8)
cdef class TopicBatches:
    cdef readonly object topic
    cdef readonly bytes echo
    cdef readonly list batches


@cython.final
@cython.freelist(8)
cdef class ProduceFrame:
    cdef readonly long long version
    cdef readonly long long correlation_id
    cdef readonly long long acks
    cdef readonly bytes topic_count
    cdef readonly list topics


@cython.locals(
    octets="const unsigned char *", end=Py_ssize_t, position=Py_ssize_t, start=Py_ssize_t, length=Py_ssize_t,
    version="long long", acks="long long", topic_count=Py_ssize_t, partition_count=Py_ssize_t,
    batch_count=Py_ssize_t,
    topics=list, batches=list,
)
cpdef read_produce(frame)

@cython.locals(position=Py_ssize_t, following=Py_ssize_t)
cdef Py_ssize_t _after_client_id(const unsigned char *octets, Py_ssize_t end) noexcept

@cython.locals(length=Py_ssize_t, index="long long")
cdef Py_ssize_t _read_batches(
    frame, const unsigned char *octets, Py_ssize_t position, Py_ssize_t end, Py_ssize_t count, list batches
) except -2

@cython.locals(
    size=Py_ssize_t, topic=TopicBatches, answer=bytearray, octets="unsigned char *", position=Py_ssize_t,
    count=Py_ssize_t, index="long long",
)
cpdef bytearray answer_produce(ProduceFrame request, list places)

@cython.locals(octet="unsigned char")
cdef Py_ssize_t _put(unsigned char *octets, Py_ssize_t position, bytes part) noexcept

cdef _text(bytes name)

@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _varint_size(const unsigned char *octets, Py_ssize_t position, Py_ssize_t end) noexcept

@cython.locals(number="long long", shift=int)
cdef Py_ssize_t _compact_length(const unsigned char *octets, Py_ssize_t position, Py_ssize_t end) noexcept
