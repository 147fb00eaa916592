"""Types of encoding.py for its callers; inside, the annotations are C's."""

from collections.abc import Sequence

def size_of_varint(number: int) -> int: ...
def put_varint(out: bytearray | memoryview, position: int, number: int) -> int: ...
def size_of_body(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] | None,
) -> int: ...
def put_record(
    out: bytearray | memoryview,
    position: int,
    body: int,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] | None,
) -> int: ...
def encode_records(
    keys: list[bytes | None] | None,
    values: list[bytes | None],
    timestamps_ms: list[int] | None,
    base_timestamp_ms: int,
    offset_deltas: list[int] | None,
    headers: list[Sequence[tuple[str, bytes | None]]] | None,
    reserved: int,
) -> bytearray: ...
def write_header(
    batch: memoryview,
    base_offset: int,
    partition_leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
) -> None: ...
