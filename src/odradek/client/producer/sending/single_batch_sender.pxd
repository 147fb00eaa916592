# C types of single_batch_sender.py.

cimport cython

from odradek.client.network.connection cimport BrokerConnection
from odradek.client.network.in_flight cimport ResponseHandler
from odradek.client.network.direct_read cimport DirectRead
from odradek.client.producer.batches.accumulator cimport Accumulator, PartitionQueue
from odradek.client.producer.batches.batch cimport ProducerBatch
from odradek.client.producer.batches.idempotence cimport PartitionOrder
from odradek.protocol.produce_template cimport ProduceTemplate

cdef Py_ssize_t _MAX_BYTES


@cython.final
cdef class Route:
    cdef readonly long long edition
    cdef readonly PartitionQueue queue
    cdef readonly PartitionOrder order
    cdef readonly BrokerConnection connection
    cdef readonly ProduceTemplate template


@cython.final
cdef class SingleBatchResponse(ResponseHandler):
    cdef SingleBatchSender _owner
    cdef Route _route
    cdef ProducerBatch _batch


@cython.final
cdef class SingleBatchSender:
    cdef object _sender
    cdef Accumulator _accumulator
    cdef dict _active
    cdef object _metadata
    cdef object _statistics
    cdef object _failures
    cdef object _lock
    cdef dict _routes
    cdef bint _is_idempotent
    cdef bint _is_transactional
    cdef bint _may_follow
    cdef double _max_idle_ms
    cdef DirectRead _direct_read
    cdef long long _in_a_row
    cdef double _responded_at_s

    @cython.locals(is_sent=bint)
    cpdef bint send(self) except -1
    @cython.locals(queue=PartitionQueue, is_direct=bint)
    cdef bint _pop_and_send(self) except -1
    @cython.locals(now_ms=double, first=ProducerBatch, route=Route, batch=ProducerBatch)
    cdef bint _send(self, PartitionQueue queue) except -1
    @cython.locals(route=Route)
    cdef Route _route(self, PartitionQueue queue, double now_ms)
    @cython.locals(batch=ProducerBatch)
    cdef ProducerBatch _next_batch(self, Route route, double now_ms)
    cdef Route _find_route(self, PartitionQueue queue)
    @cython.locals(base_offset="long long")
    cdef on_response(self, Route route, ProducerBatch batch, frame)
    @cython.locals(now_s=double)
    cdef _start_direct_read_if_frequent(self, BrokerConnection connection)
    @cython.locals(base_offset="long long")
    cdef bint handle_directly(self, Route route, ProducerBatch batch, frame) except -1
    cdef failed(self, Route route, ProducerBatch batch, error)
