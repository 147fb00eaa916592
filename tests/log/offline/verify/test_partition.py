"""Logs with a past: compacted, cut at their start, led by many; none of it is damage."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from log.cleaner.given_compaction import append, compacted_log, end_transaction, manager_of, roll
from log.given_directories import ORDERS, SMALL_SEGMENTS, append_batch, open_manager
from log.given_logs import NOW_MS, SMALL, fill, open_log
from odradek.log.offline.verify.directory import verify
from odradek.log.offline.verify.finding import Damage, LogFinding
from odradek.records.batch import stamp
from odradek.records.compression import Codec


def findings(path: Path) -> list[LogFinding]:
    found: list[LogFinding] = []
    verify(str(path), found.append)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_a_compacted_log_is_healthy(tmp_path: Path, seed: int) -> None:
    log = compacted_log(tmp_path / "data")
    draw = random.Random(seed)
    sequences = {7: 0, 8: 0}
    for number in range(60):
        pairs = [(b"key %d" % draw.randrange(12), draw.choice([b"value", None])) for _ in range(4)]
        producer_id = draw.choice([-1, 7, 8])
        if producer_id < 0:
            append(log, pairs, codec=Codec(number % len(Codec)))
        else:
            producer = (producer_id, 0, sequences[producer_id])
            append(log, pairs, producer=producer, is_transactional=True)
            sequences[producer_id] += len(pairs)
            if draw.random() < 0.5:
                end_transaction(log, producer_id, is_commit=draw.random() < 0.5)
        if number % 20 == 19:
            roll(log)
            manager_of(log).run(NOW_MS + number * 1000)
    log.close(NOW_MS)
    assert findings(tmp_path / "data" / "orders-0") == []


def test_a_log_whose_start_was_deleted_inside_of_a_batch_is_healthy(tmp_path: Path) -> None:
    manager = open_manager(tmp_path / "data")
    log = manager.get_or_create(ORDERS[0], SMALL_SEGMENTS, now_ms=NOW_MS)
    for number in range(60):
        append_batch(log, number, epoch=number // 20)
    log.update_high_watermark(log.log_end_offset)
    log.delete_records(100)
    log.enforce_retention(NOW_MS)
    manager.stop(NOW_MS)
    assert findings(tmp_path / "data") == []
    assert findings(tmp_path / "data" / "orders-0") == []


def test_a_leader_that_wrote_nothing_is_no_damage(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    for epoch in (0, 2, 5):
        log.assign_leader_epoch(epoch)
        fill(log, 3, leader_epoch=epoch)
        log.assign_leader_epoch(epoch + 1)
    log.close(NOW_MS)
    assert findings(tmp_path / "orders-0") == []


def test_an_empty_log_is_healthy(tmp_path: Path) -> None:
    open_log(tmp_path / "orders-0").close(NOW_MS)
    assert findings(tmp_path / "orders-0") == []


def test_a_log_with_batches_out_of_order_is_damaged_at_the_second(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0", SMALL)
    fill(log, 3)
    log.close(NOW_MS)
    path = tmp_path / "orders-0" / "00000000000000000000.log"
    content = bytearray(path.read_bytes())
    size = len(content) // 3
    stamp(content, size, 0, 0)  # the offsets of the first batch once more
    path.write_bytes(content)

    found = findings(tmp_path / "orders-0")

    assert [(one.position, one.kind) for one in found if one.kind is Damage.BATCH] == [(size, Damage.BATCH)]


def test_a_checkpoint_that_disagrees_with_the_batches_is_reported_once(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    fill(log, 5, leader_epoch=4)
    log.close(NOW_MS)
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n6 0\n")

    (found,) = findings(tmp_path / "orders-0")

    assert found.kind is Damage.EPOCHS
    assert "leader epoch 4 where the checkpoint says 6" in found.problem
