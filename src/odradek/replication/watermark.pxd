# C types of watermark.py.

cimport cython

from odradek.replication.remote_replica cimport RemoteReplica


@cython.locals(least="long long", follower=RemoteReplica)
cpdef long long high_watermark(long long own_end_offset, list followers, long long current) except -2
