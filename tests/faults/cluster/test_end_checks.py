"""The checks at the end of a fault run find what they are there for."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from faults.cluster.end_checks import (
    Resources,
    dump_problems,
    growth,
    not_preferred,
    resources,
    unserved,
    verify_problems,
)
from faults.cluster.main import kinds_for
from log.given_logs import NOW_MS, a_batch, open_log
from odradek.testing.history.operations import Fault, History, Outcome, Poll, Read, Send

AWAY = "ZooKeeper away"


def sent(at_s: int, outcome: Outcome = Outcome.ACKNOWLEDGED) -> Send:
    return Send("p", at_s * 1000, "t", 0, at_s, f"p-{at_s}", outcome)


def polled(at_s: int) -> Poll:
    return Poll("r", at_s * 1000, 1, (Read("t", 0, at_s, f"p-{at_s}"),))


def history(sends: list[Send], polls: list[Poll]) -> History:
    return History.of([*sends, *polls, Fault(AWAY, "all", 100_000, 160_000)])


def test_a_fault_in_which_nothing_is_acknowledged_or_read_for_long_is_reported():
    sends, polls = [sent(at) for at in range(100, 160, 5)], [polled(at) for at in range(100, 160, 5)]

    assert list(unserved(history(sends, polls), AWAY, 10)) == []
    assert list(unserved(history(sends[:4], polls), AWAY, 10)) == [
        f"{AWAY}: nothing was acknowledged for 45.0 s"
    ]
    assert list(unserved(history(sends, polls[6:]), AWAY, 10)) == [f"{AWAY}: nothing was read for 30.0 s"]
    unknown = [sent(at, Outcome.UNKNOWN) for at in range(100, 160, 5)]
    assert list(unserved(history(unknown, polls), AWAY, 10)) == [
        f"{AWAY}: nothing was acknowledged for 60.0 s"
    ]


def test_more_files_or_memory_than_a_new_process_needs_is_reported():
    needed = Resources(40, (), 50_000_000)

    assert list(growth(Resources(70, (), 150_000_000), needed)) == []
    assert len(list(growth(Resources(71, (), 50_000_000), needed))) == 1
    assert len(list(growth(Resources(40, ("/x.log (deleted)",), 50_000_000), needed))) == 1
    assert len(list(growth(Resources(40, (), 150_000_001), needed))) == 1


def test_a_removed_file_that_is_still_open_is_seen(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    with path.open("wb"):
        assert f"{path} (deleted)" not in resources(os.getpid()).removed_files
        path.unlink()
        assert f"{path} (deleted)" in resources(os.getpid()).removed_files


def test_files_of_a_partition_about_to_be_removed_do_not_count(tmp_path):
    (tmp_path / "t-0.0123-delete").mkdir()
    before = resources(os.getpid()).open_files
    with (tmp_path / "t-0.0123-delete" / "0.log").open("wb"):
        assert resources(os.getpid()).open_files == before
    with (tmp_path / "0.log").open("wb"):
        assert resources(os.getpid()).open_files == before + 1


def test_a_leader_that_is_not_the_first_replica_is_named():
    partitions = {
        0: SimpleNamespace(leader=1, replicas=[1, 2]),
        1: SimpleNamespace(leader=1, replicas=[2, 1]),
    }
    metadata = SimpleNamespace(topics={"t": SimpleNamespace(partitions=partitions)})
    brokers = SimpleNamespace(metadata=lambda: metadata)

    assert not_preferred(brokers, ["t"]) == ["t-1 is led by 1 of [2, 1]"]


def test_a_changed_byte_of_a_log_is_found(tmp_path):
    log = open_log(tmp_path / "t-0")
    log.append_as_leader(a_batch(3), 0, now_ms=NOW_MS)
    log.close(NOW_MS)
    assert verify_problems([tmp_path / "t-0"]) == []

    (segment,) = (tmp_path / "t-0").glob("*.log")
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content)
    assert "log verify" in verify_problems([tmp_path / "t-0"])[0]


@pytest.mark.java
@pytest.mark.slow
def test_a_changed_byte_of_a_log_is_found_by_kafka_too(tmp_path):
    log = open_log(tmp_path / "t-0")
    log.append_as_leader(a_batch(3), 0, now_ms=NOW_MS)
    log.close(NOW_MS)
    assert dump_problems([tmp_path]) == []

    (segment,) = (tmp_path / "t-0").glob("*.log")
    content = bytearray(segment.read_bytes())
    content[-1] ^= 1
    segment.write_bytes(content)
    assert "isvalid: false" in "".join(dump_problems([tmp_path]))


def test_a_disk_is_wiped_only_where_another_replica_has_everything():
    wipes = {"wipe", "wipe controller"}
    assert wipes <= set(kinds_for("embedded", min_insync_replicas=2))
    assert wipes.isdisjoint(kinds_for("embedded", min_insync_replicas=1))
