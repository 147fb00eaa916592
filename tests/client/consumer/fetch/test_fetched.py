"""What a fetch brought: walked in pieces of any size, without what readers must not see."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from odradek.client.consumer.consumer_record import ConsumerRecord
from odradek.client.consumer.errors import CorruptRecords
from odradek.client.consumer.fetch.fetched import Fetched
from odradek.client.consumer.positions import PartitionPosition
from odradek.client.consumer.tables import new_sink, to_table
from odradek.records.batch import TimestampType, stamp
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.control import ControlType, EndTransactionMarker, build_end_transaction_marker
from odradek.records.record import Record

STATE = PartitionPosition("t", 3)


def a_batch(offset: int, count: int, **settings: Any) -> bytearray:
    records = [
        Record(offset + n, 1000 + n, None, b"%d" % (offset + n), (("h", b"1"),) if n % 2 else ())
        for n in range(count)
    ]
    return build_batch(records, base_offset=offset, partition_leader_epoch=7, **settings)


def marker(offset: int, producer_id: int, control_type: ControlType) -> bytearray:
    return build_end_transaction_marker(
        EndTransactionMarker(control_type, 0),
        producer_id=producer_id,
        producer_epoch=0,
        timestamp_ms=0,
        base_offset=offset,
    )


def fetched(*batches: bytes, offset: int = 0, **settings: Any) -> Fetched:
    return Fetched(STATE, offset, memoryview(b"".join(batches)), **settings)


def drain(data: Fetched, step: int = 100) -> list[ConsumerRecord[bytes, bytes]]:
    records: list[ConsumerRecord[bytes, bytes]] = []
    while not data.is_empty:
        data.append_records(step, None, None, records)
    return records


@given(
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=6),
    steps=st.integers(1, 30),
    codec=st.sampled_from(Codec),
    draws=st.data(),
)
def test_every_record_from_the_offset_on_once(
    sizes: list[int], steps: int, codec: Codec, draws: st.DataObject
) -> None:
    batches, end = [], 0
    for size in sizes:
        batches.append(a_batch(end, size, codec=codec))
        end += size
    start = draws.draw(st.integers(0, end - 1))

    data = fetched(*batches, offset=start)
    records = drain(data, steps)

    assert [record.offset for record in records] == list(range(start, end))
    assert [record.value for record in records] == [b"%d" % offset for offset in range(start, end)]
    assert data.offset == data.next_fetch_offset == end
    assert {record.leader_epoch for record in records} == {7}


def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch() -> None:
    data = fetched(a_batch(0, 5), bytes(a_batch(5, 5))[:-1])

    assert data.next_fetch_offset == 5
    assert len(drain(data)) == 5


@given(
    kinds=st.lists(st.sampled_from(["plain", "lz4", "append time", "empty", "other epoch"]), max_size=12),
    limit=st.integers(1, 40),
)
def test_tables_and_records_agree_whatever_batches_are_mixed(kinds: list[str], limit: int) -> None:
    settings: dict[str, dict[str, Any]] = {
        "plain": {},
        "lz4": {"codec": Codec.LZ4},
        "append time": {"timestamp_type": TimestampType.LOG_APPEND_TIME, "max_timestamp_ms": 5000},
        "empty": {"last_offset_delta": 2, "max_timestamp_ms": 0},
        "other epoch": {},
    }
    batches = []
    for number, kind in enumerate(kinds):
        batch = a_batch(3 * number, 0 if kind == "empty" else 3, **settings[kind])
        stamp(batch, 0, 3 * number, 8 if kind == "other epoch" else 7)
        batches.append(batch)

    records = drain(fetched(*batches), limit)
    data, rows = fetched(*batches), []
    while not data.is_empty:
        sink = new_sink()
        data.append_columns(limit, sink)
        rows += to_table([(STATE, sink)]).to_pylist()

    assert [record.offset for record in records] == [
        3 * number + n for number, kind in enumerate(kinds) if kind != "empty" for n in range(3)
    ]
    assert [(row["offset"], row["value"], row["timestamp_type"]) for row in rows] == [
        (record.offset, record.value, record.timestamp_type) for record in records
    ]
    assert [round(row["timestamp"].timestamp() * 1000) for row in rows] == [one.timestamp for one in records]


@given(taken=st.integers(0, 12), codec=st.sampled_from([Codec.NONE, Codec.LZ4]))
def test_a_table_continues_where_records_were_read(taken: int, codec: Codec) -> None:
    data = fetched(a_batch(0, 5, codec=codec), a_batch(5, 8, codec=codec))
    data.append_records(taken, None, None, [])
    sink = new_sink()

    data.append_columns(100, sink)

    assert to_table([(STATE, sink)])["offset"].to_pylist() == list(range(taken, 13))
    assert data.is_empty
    assert data.offset == 13


def test_a_table_has_what_lies_before_a_damaged_batch_and_the_next_one_reports() -> None:
    damaged = bytearray(a_batch(5, 5))
    damaged[-1] ^= 1
    data = fetched(a_batch(0, 5), damaged)
    sink = new_sink()

    data.append_columns(100, sink)
    assert to_table([(STATE, sink)])["offset"].to_pylist() == [0, 1, 2, 3, 4]

    with pytest.raises(CorruptRecords, match="batch at offset 5 of t-3 is damaged"):
        data.append_columns(100, new_sink())


def test_the_brokers_time_is_reported_as_such() -> None:
    batch = a_batch(0, 2, timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp_ms=5000)

    assert [(one.timestamp, one.timestamp_type) for one in drain(fetched(batch))] == [(5000, 1), (5000, 1)]


def test_a_compacted_end_moves_the_position_past_the_gap() -> None:
    data = fetched(a_batch(0, 2, last_offset_delta=9))

    assert [record.offset for record in drain(data)] == [0, 1]
    assert data.offset == 10


def transaction(offset: int, producer_id: int) -> bytearray:
    return a_batch(
        offset, 2, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True
    )


def test_aborted_records_and_markers_stay_unseen_by_readers_of_committed_data() -> None:
    batches = [
        transaction(0, producer_id=1),
        transaction(2, producer_id=2),
        marker(4, 1, ControlType.ABORT),
        transaction(5, producer_id=1),
        marker(7, 2, ControlType.COMMIT),
        marker(8, 1, ControlType.COMMIT),
        a_batch(9, 1),
    ]

    committed = drain(fetched(*batches, aborted=[(1, 0)]))
    everything = drain(fetched(*batches))

    assert [record.offset for record in committed] == [2, 3, 5, 6, 9]
    assert [record.offset for record in everything] == [0, 1, 2, 3, 5, 6, 9]


def test_damage_is_reported_with_its_offset_and_the_records_before_it_are_given() -> None:
    bad = a_batch(5, 5)
    bad[-2] ^= 1  # the last value
    data = fetched(a_batch(0, 5), bad)
    records: list[Any] = []

    with pytest.raises(CorruptRecords, match="batch at offset 5 of t-3 is damaged"):
        data.append_records(100, None, None, records)

    assert [record.offset for record in records] == [0, 1, 2, 3, 4]
    assert data.offset == 5
    assert len(drain(fetched(a_batch(0, 5), bad, checks_crc=False))) == 10


def test_records_compare_and_print_by_their_content() -> None:
    (record,) = drain(fetched(a_batch(0, 1)))
    same = ConsumerRecord("t", 3, 0, 1000, None, b"0", (), 0, 7)

    assert record == same
    assert hash(record) == hash(same)
    assert repr(record).startswith("ConsumerRecord(topic='t', partition=3, offset=0, timestamp=1000")
