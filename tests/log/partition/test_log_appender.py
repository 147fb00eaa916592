"""The short way into a log ends where the long one does, for any batches."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from log.given_logs import SMALL, a_batch, open_log
from odradek.common.errors import KafkaError
from odradek.log.config import LogConfig
from odradek.log.partition.log_appender import AppendInfo
from odradek.log.partition.partition_log import PartitionLog
from odradek.records.compression import Codec

NOW_MS = 1_700_000_000_000
CONFIGS = [
    SMALL,
    SMALL.replace(segment_index_bytes=40),
    SMALL.replace(segment_ms=50),
    SMALL.replace(message_timestamp_type="LogAppendTime"),
    SMALL.replace(compression_type="lz4"),
    SMALL.replace(cleanup_policy=("compact",)),
    SMALL.replace(max_message_bytes=300),
]

batches = st.builds(
    dict,
    value=st.binary(max_size=300),
    key=st.sampled_from([None, b"k"]),
    timestamp_ms=st.sampled_from([NOW_MS, NOW_MS + 20, NOW_MS + 90, NOW_MS + 10**9, -1]),
    codec=st.sampled_from([Codec.NONE, Codec.LZ4]),
    producer=st.sampled_from([None, (7, 0), (7, 1), (8, 0)]),
    sequence=st.integers(0, 4),
    leader_epoch=st.sampled_from([0, 0, 0, 1]),
)


def append_all(log: PartitionLog, given: list[dict], *, in_place: bool) -> list[AppendInfo | str]:
    """What became of each batch; a view of writable bytes may take the short way, plain bytes never."""
    outcomes: list[AppendInfo | str] = []
    epoch = 0
    for one in given:
        producer_id, producer_epoch = one["producer"] or (-1, -1)
        batch = a_batch(
            1,
            value=one["value"],
            key=one["key"],
            timestamp_ms=one["timestamp_ms"],
            codec=one["codec"],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=one["sequence"] if one["producer"] else -1,
        )
        epoch = max(epoch, one["leader_epoch"])
        records = memoryview(bytearray(batch)) if in_place else bytes(batch)
        try:
            outcomes.append(log.append_as_leader(records, epoch, now_ms=NOW_MS))
        except KafkaError as error:
            outcomes.append(f"{error.error_code.name}: {error}")
    return outcomes


def files_of(log: PartitionLog) -> dict[str, bytes]:
    for segment in log.segments:
        segment.write_pending()
    return {path.name: path.read_bytes() for path in Path(log.directory.path).iterdir()}


@pytest.mark.parametrize("config", CONFIGS)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_batches=st.lists(batches, max_size=25))
def test_both_ways_make_the_same_log(
    tmp_path_factory: pytest.TempPathFactory, config: LogConfig, given_batches: list[dict]
) -> None:
    short, long = (open_log(tmp_path_factory.mktemp("log"), config) for _ in range(2))

    outcomes = append_all(short, given_batches, in_place=True)

    assert outcomes == append_all(long, given_batches, in_place=False)
    assert files_of(short) == files_of(long)
    assert short.producers.entries == long.producers.entries
    assert short.producers.end_offset == long.producers.end_offset == short.log_end_offset
    short.release()
    long.release()


def test_ordinary_batches_do_take_the_short_way(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    taken = []

    for number in range(5):
        records = memoryview(bytearray(a_batch(3, timestamp_ms=NOW_MS + number)))
        taken.append(log.append_shortly(records, 0, NOW_MS) is not None)
        if not taken[-1]:
            log.append_as_leader(bytes(records), 0, now_ms=NOW_MS)

    # The first finds an empty segment, which has no time to roll by yet.
    assert taken == [False, True, True, True, True]


def test_a_new_first_batch_brings_new_terms(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL.replace(segment_ms=50))
    for timestamp_ms in (NOW_MS, NOW_MS + 1, NOW_MS + 2):
        log.append_as_leader(
            memoryview(bytearray(a_batch(1, timestamp_ms=timestamp_ms))), 0, now_ms=timestamp_ms
        )
    log.truncate_to(0, now_ms=NOW_MS)

    for timestamp_ms in (NOW_MS + 100, NOW_MS + 101, NOW_MS + 140):
        log.append_as_leader(
            memoryview(bytearray(a_batch(1, timestamp_ms=timestamp_ms))), 0, now_ms=timestamp_ms
        )

    assert len(list(log.segments)) == 1
