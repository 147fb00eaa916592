"""After a restart a leader knows the last five batches of a producer, though a snapshot has only one."""

from __future__ import annotations

from pathlib import Path

import pytest

from log.given_logs import NOW_MS, SMALL, a_batch, after_clean_stop, open_log
from odradek.log.config import LogConfig
from odradek.log.errors import OutOfOrderSequence
from odradek.log.partition import earlier_batches
from odradek.log.partition.log_appender import AppendInfo
from odradek.log.partition.partition_log import PartitionLog
from odradek.log.producers.producer_states import BATCHES_KEPT

PRODUCER, OTHER = 3, 4
BATCHES, RECORDS = 8, 2


def append(log: PartitionLog, number: int, producer_id: int = PRODUCER, epoch: int = 0) -> AppendInfo:
    batch = a_batch(
        RECORDS,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=number * RECORDS,
        value=b"x" * 300,
    )
    return log.append_as_leader(batch, 0, now_ms=NOW_MS)


def restarted(log: PartitionLog, path: Path, config: LogConfig) -> PartitionLog:
    log.close(NOW_MS)
    return open_log(path, config, checkpoints=after_clean_stop(log))


@pytest.mark.parametrize("config", [LogConfig(), SMALL], ids=["one-segment", "many-segments"])
def test_the_last_five_batches_are_duplicates_after_a_restart(tmp_path: Path, config: LogConfig) -> None:
    log = open_log(tmp_path, config)
    offsets = []
    for number in range(BATCHES):
        offsets.append(append(log, number).base_offset)
        append(log, number, OTHER)
    log = restarted(log, tmp_path, config)

    for number in range(BATCHES - BATCHES_KEPT, BATCHES):
        again = append(log, number)
        assert (again.is_duplicate, again.base_offset) == (True, offsets[number])
    with pytest.raises(OutOfOrderSequence):
        append(log, BATCHES - BATCHES_KEPT - 1)
    assert append(log, BATCHES).base_offset == 2 * BATCHES * RECORDS


def test_batches_after_the_restart_count_too(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(BATCHES):
        append(log, number)
    log = restarted(log, tmp_path, SMALL)
    append(log, BATCHES)
    append(log, BATCHES + 1)
    assert append(log, BATCHES - 3).is_duplicate
    with pytest.raises(OutOfOrderSequence):
        append(log, BATCHES - 4)


def test_batches_of_an_older_epoch_are_no_duplicates(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(BATCHES):
        append(log, number)
    append(log, 0, epoch=1)
    append(log, 1, epoch=1)
    log = restarted(log, tmp_path, SMALL)
    assert append(log, 0, epoch=1).is_duplicate
    with pytest.raises(OutOfOrderSequence):
        append(log, BATCHES - 1, epoch=1)


def test_no_more_of_the_log_is_read_than_there_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(earlier_batches, "MAX_BYTES", 1000)
    log = open_log(tmp_path)
    append(log, 0)
    for number in range(BATCHES):
        append(log, number, OTHER)
    append(log, 1)
    log = restarted(log, tmp_path, SMALL)
    with pytest.raises(OutOfOrderSequence):
        append(log, 0)
