# C types of send_path.py.

from odradek.client.producer.accumulator cimport Accumulator
from odradek.client.producer.batch cimport DeliveryFuture
from odradek.client.producer.lone_way cimport LoneWay


cdef class SendPath:
    cdef readonly Accumulator _accumulator
    cdef readonly bint _is_plain
    cdef public LoneWay _lone_way

    cpdef _send_now(self)
