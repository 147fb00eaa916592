# C types of idempotence.py.

cimport cython

from odradek.client.producer.batches.batch cimport ProducerBatch


@cython.final
cdef class PartitionOrder:
    cdef readonly object partition
    cdef readonly list sent
    cdef readonly list retries
    cdef long long _max_in_flight
    cdef long long _producer_id
    cdef long long _epoch
    cdef long long _sequence
    cdef bint _needs_new_epoch
    cdef bint _is_known

    @cython.locals(head=ProducerBatch, batch=ProducerBatch)
    cpdef ProducerBatch next_batch(self, closed, double now_ms, producer)
    cdef _append(self, ProducerBatch batch, producer)
    cdef _begin_epoch(self, producer)
    cpdef delivered(self, ProducerBatch batch)
    cdef _drop(self, ProducerBatch batch)
