# C types of accumulator.py.

cimport cython

from odradek.client.producer.batches.batch cimport DeliveryFuture, ProducerBatch, new_future, smallest_batch_size

@cython.final
cdef class PartitionQueue:
    cdef readonly str topic
    cdef readonly long long partition
    cdef public ProducerBatch open
    cdef readonly object closed
    cdef public bint is_listed
    cdef public object order


@cython.final
cdef class TopicQueues:
    cdef readonly str name
    cdef readonly list queues
    cdef readonly list available
    cdef readonly long long sticky
    cdef readonly long long sticky_bytes


@cython.final
cdef class Accumulator:
    cdef readonly dict topics
    cdef readonly object lock
    cdef readonly object ready
    cdef readonly object lingering
    cdef readonly dict incomplete
    cdef readonly long long memory_left
    cdef readonly long long batch_size
    cdef readonly long long enlarged_batch_size
    cdef readonly long long memory
    cdef readonly long long max_record_bytes
    cdef readonly object problem
    cdef readonly object refusal
    cdef public long long blocked
    cdef readonly long long records
    cdef public bint is_sender_asleep
    cdef public bint defers_waking
    cdef public bint is_wake_due
    cdef public bint hashes_keys
    cdef public object wake
    cdef public object on_memory
    cdef object _randrange
    cdef object _now_ms
    cdef object _memory_waiters

    @cython.locals(queues=TopicQueues, future=DeliveryFuture, chosen="long long", timestamp_ms="long long")
    cpdef DeliveryFuture send(
        self, str topic, value, key, partition, headers, timestamp, on_delivery
    )
    @cython.locals(queue=PartitionQueue, batch=ProducerBatch, future=DeliveryFuture)
    cdef DeliveryFuture _append_at_once(
        self, TopicQueues topic, long long partition, bytes key, bytes value, long long timestamp_ms, on_delivery
    )
    cpdef DeliveryFuture append(
        self, TopicQueues topic, long long partition, bytes key, bytes value, headers, long long timestamp_ms, on_delivery
    )
    @cython.locals(queue=PartitionQueue, batch=ProducerBatch, chooses=bint, is_sticky=bint)
    cdef DeliveryFuture _append(
        self, TopicQueues topic, long long partition, bytes key, bytes value, headers, long long timestamp_ms, on_delivery
    )
    @cython.locals(digest="long long")
    cdef long long _choose(self, TopicQueues topic, bytes key)
    @cython.locals(least="long long", capacity="long long", batch=ProducerBatch)
    cdef ProducerBatch _open(self, PartitionQueue queue, bytes key, bytes value, headers)
    cdef _switch(self, TopicQueues topic)
    @cython.locals(batch=ProducerBatch, topic=TopicQueues)
    cdef _close(self, PartitionQueue queue)
    @cython.locals(queue=PartitionQueue)
    cpdef PartitionQueue pop_single(self, Py_ssize_t max_in_flight)
    cpdef add_ready(self, PartitionQueue queue)
    cpdef complete(self, ProducerBatch batch, long long base_offset, long long log_append_time_ms=*, error=*)
