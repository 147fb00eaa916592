# C types of batch.py.

cimport cython

from odradek.client.network.direct_read cimport DirectRead


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class RecordMetadata:
    cdef readonly str topic
    cdef readonly long long partition
    cdef readonly long long offset
    cdef readonly long long timestamp


@cython.final
@cython.freelist(64)
cdef class DeliveryFuture:
    cdef ProducerBatch _batch
    cdef long long _index
    cdef long long _timestamp_ms

    @cython.locals(part=DeliveryFuture)
    cdef DeliveryFuture _part(self)
    @cython.locals(batch=ProducerBatch, place=RecordMetadata, is_appended_at=bint)
    cdef RecordMetadata metadata(self)


@cython.final
cdef class ProducerBatch:
    cdef readonly str topic
    cdef readonly long long partition
    cdef readonly double created_ms
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t size
    cdef readonly bint is_done
    cdef readonly long long base_offset
    cdef readonly long long log_append_time_ms
    cdef readonly object error
    cdef public dict record_errors
    cdef readonly list parts
    cdef public object payload
    cdef public Py_ssize_t reserved
    cdef public long long attempts
    cdef public double retry_at_ms
    cdef public long long producer_id
    cdef public long long producer_epoch
    cdef public long long base_sequence
    cdef public bint is_transactional
    cdef object _encoded
    cdef unsigned char* _out
    cdef Py_ssize_t _capacity
    cdef long long _base_timestamp_ms
    cdef long long _max_timestamp_ms
    cdef list _on_delivery
    cdef list _done_callbacks
    cdef list _waiting
    cdef public DirectRead direct_read

    cpdef DeliveryFuture append(self, bytes key, bytes value, headers, long long timestamp_ms, on_delivery)
    @cython.locals(delta="long long", body=Py_ssize_t)
    cdef DeliveryFuture append_with_future(
        self, DeliveryFuture future, bytes key, bytes value, headers, long long timestamp_ms, on_delivery
    )
    cpdef finish(self, codec, level)
    cpdef bint complete(self, long long base_offset, long long log_append_time_ms=*, error=*) except -1
    cdef error_of(self, long long index)
    cdef wait(self, timeout)
    cdef read_available(self)
    @cython.locals(direct_read=DirectRead, deadline=double)
    cdef double _wait_directly(self, double timeout) except? -1
    @cython.locals(place=Py_ssize_t, future=DeliveryFuture)
    cdef _call_on_delivery(self, list on_delivery)
    @cython.locals(part=ProducerBatch)
    cdef DeliveryFuture moved(self, long long index, long long timestamp_ms)
    @cython.locals(place=Py_ssize_t, future=DeliveryFuture, part=ProducerBatch)
    cpdef split_into(self, list parts)


@cython.locals(body=Py_ssize_t, length=Py_ssize_t)
cpdef Py_ssize_t smallest_batch_size(bytes key, bytes value, headers) except -1

cpdef DeliveryFuture new_future()
