"""Appends of a leader: in place or copied, any batches make the same log; limits follow the segment."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from log.given_logs import SMALL, a_batch, open_log
from odradek.common.errors import KafkaError
from odradek.log.config import LogConfig
from odradek.log.partition.leader_batches import validate_from_client
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
    """The outcome of each batch; a view of writable bytes is stamped in place, plain bytes are copied."""
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
def test_in_place_or_copied_the_log_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, config: LogConfig, given_batches: list[dict]
) -> None:
    in_place, copied = (open_log(tmp_path_factory.mktemp("log"), config) for _ in range(2))

    outcomes = append_all(in_place, given_batches, in_place=True)

    assert outcomes == append_all(copied, given_batches, in_place=False)
    assert files_of(in_place) == files_of(copied)
    assert in_place.producers.entries == copied.producers.entries
    assert in_place.producers.end_offset == copied.producers.end_offset == in_place.log_end_offset
    in_place.release()
    copied.release()


def test_a_valid_batch_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The detailed validation, which names what is wrong, is only for batches that are refused."""
    log = open_log(tmp_path)
    detailed = []
    monkeypatch.setattr(
        "odradek.log.partition.log_appender.validate_from_client",
        lambda *given: detailed.append(given) or validate_from_client(*given),
    )

    for number in range(3):
        log.append_as_leader(memoryview(bytearray(a_batch(3, timestamp_ms=NOW_MS + number))), 0, NOW_MS)
    assert not detailed

    damaged = bytearray(a_batch(3, timestamp_ms=NOW_MS))
    damaged[-1] ^= 1
    with pytest.raises(KafkaError):
        log.append_as_leader(memoryview(damaged), 0, NOW_MS)
    assert len(detailed) == 1


def test_a_new_first_batch_brings_new_limits(tmp_path: Path) -> None:
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
