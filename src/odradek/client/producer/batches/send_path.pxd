# C types of send_path.py.

from odradek.client.producer.batches.accumulator cimport Accumulator
from odradek.client.producer.batches.batch cimport DeliveryFuture
from odradek.client.producer.sending.single_batch_sender cimport SingleBatchSender


cdef class SendPath:
    cdef readonly Accumulator _accumulator
    cdef readonly bint _is_plain
    cdef public SingleBatchSender _single_batch_sender

    cpdef _send_now(self)
