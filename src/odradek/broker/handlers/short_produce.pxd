# C types of short_produce.py.

cimport cython

from odradek.protocol.produce_frames cimport ProduceFrame, TopicBatches
from odradek.replication.partition cimport Partition

cdef double _MAX_SECONDS
cdef frozenset _INTERNAL_TOPICS


@cython.locals(
    request=ProduceFrame, topic=TopicBatches, partition=Partition, partitions=dict, topic_names=dict, appends=list
)
cpdef answer_shortly(services, frame)

@cython.locals(partition=Partition, outcomes=list, has_errors=bint, now_ms="long long", deadline=double)
cdef _append_all(services, ProduceFrame request, list appends)
