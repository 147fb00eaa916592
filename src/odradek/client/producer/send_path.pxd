# C types of send_path.py.

from odradek.client.producer.accumulator cimport Accumulator
from odradek.client.producer.batch cimport DeliveryFuture


cdef class SendPath:
    cdef readonly Accumulator _accumulator
    cdef readonly bint _is_plain
