# C types of acceptance.py.

cimport cython

cdef long long _CRC_POSITION, _CODEC_MASK, _UNKNOWN_ATTRIBUTES, _HEADER_SIZE, _LOG_OVERHEAD, _MAGIC, _NO_TIMESTAMP, _ENDLESS_MS


@cython.locals(
    size="long long", base_offset="long long", length="long long", magic="long long", crc="long long",
    attributes="long long", last_delta="long long", base_ms="long long", max_ms="long long",
    producer_id="long long", base_sequence="long long", count="long long", untimed_delta_ms="long long",
    problem="long long", least_delta_ms="long long", greatest_delta_ms="long long", fields=tuple,
)
cpdef tuple accepted_fields(
    buffer,
    long long max_message_bytes,
    long long max_decompressed_bytes,
    bint requires_key,
    long long earliest_ms,
    long long latest_ms,
)

cdef _check_compressed(
    view,
    long long codec,
    long long max_decompressed_bytes,
    long long count,
    bint requires_key,
    long long untimed_delta_ms,
)
