"""Replicas that are the same up to the high watermark are found so; every difference below it is found."""

from __future__ import annotations

import struct
from pathlib import Path

from odradek.testing.history.replicas import Replica, differences, partition_differences


def batch(base_offset: int, count: int = 1, filler: bytes = b"x") -> bytes:
    body = bytearray(49 + 20)
    struct.pack_into(">i", body, 23 - 12, count - 1)
    body[49:] = filler * 20
    return struct.pack(">qi", base_offset, len(body)) + bytes(body)


def a_replica(directory: Path, segments: dict[int, bytes], epochs: str = "0\n1\n0 0\n") -> Replica:
    directory.mkdir(parents=True)
    for base_offset, content in segments.items():
        (directory / f"{base_offset:020}.log").write_bytes(content)
    (directory / "leader-epoch-checkpoint").write_text(epochs)
    return Replica(directory.parent.name, directory)


SAME = batch(0) + batch(1, 3) + batch(4)


def test_other_segment_boundaries_and_a_tail_above_the_high_watermark_are_no_difference(tmp_path):
    one = a_replica(tmp_path / "1" / "t-0", {0: SAME + batch(5)})
    other = a_replica(tmp_path / "2" / "t-0", {0: batch(0), 1: batch(1, 3) + batch(4) + bytes(500)})
    assert differences([one, other], 5) == []


def test_a_replica_that_deleted_old_segments_is_compared_from_there(tmp_path):
    one = a_replica(tmp_path / "1" / "t-0", {0: SAME}, "0\n2\n0 0\n1 4\n")
    other = a_replica(tmp_path / "2" / "t-0", {1: batch(1, 3) + batch(4)}, "0\n2\n0 1\n1 4\n")
    assert differences([one, other], 5) == []


def test_every_flipped_bit_is_found(tmp_path):
    one = a_replica(tmp_path / "1" / "t-0", {0: SAME})
    other = a_replica(tmp_path / "2" / "t-0", {0: SAME})
    segment = other.directory / f"{0:020}.log"
    for at in range(len(SAME)):
        segment.write_bytes(SAME[:at] + bytes([SAME[at] ^ 1]) + SAME[at + 1 :])
        assert differences([one, other], 5), f"byte {at}"


def test_a_replica_that_ends_too_early_is_found(tmp_path):
    one = a_replica(tmp_path / "1" / "t-0", {0: SAME})
    other = a_replica(tmp_path / "2" / "t-0", {0: SAME[: -len(batch(4))]})
    (found,) = differences([one, other], 5)
    assert found == ("2 ends at 4, below the high watermark 5: 1:00000000000000000000.log@162 has more")
    assert differences([other], 5) == ["2 ends at 4, below 5"]
    assert differences([other, Replica("3", other.directory)], 5) == [
        "2 and 3 end at 4, below the high watermark 5"
    ]


def test_other_epochs_are_found_only_below_the_high_watermark(tmp_path):
    one = a_replica(tmp_path / "1" / "t-0", {0: SAME}, "0\n3\n0 0\n2 4\n9 5\n")
    other = a_replica(tmp_path / "2" / "t-0", {0: SAME}, "0\n2\n0 0\n3 4\n")
    (found,) = differences([one, other], 5)
    assert found == "leader epochs below 5: 1 has [(0, 0), (2, 4)], 2 has [(0, 0), (3, 4)]"
    assert differences([one, other], 4) == []


def test_the_directories_of_all_brokers_are_compared(tmp_path):
    a_replica(tmp_path / "1" / "t-0", {0: SAME})
    a_replica(tmp_path / "2" / "t-0", {0: SAME + batch(5)})
    log_dirs = {"1": tmp_path / "1", "2": tmp_path / "2"}
    checkpoint = tmp_path / "1" / "replication-offset-checkpoint"
    checkpoint.write_text("0\n1\nt 0 5\n")
    assert partition_differences(log_dirs, "t-0") == []

    checkpoint.write_text("0\n1\nt 0 6\n")
    (found,) = partition_differences(log_dirs, "t-0")
    assert found.startswith("t-0: 1 ends at 5, below the high watermark 6")
