from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.ids import TopicPartition
from odradek.log.filenames import (
    DirectoryName,
    DirectoryState,
    SegmentFile,
    marked_directory_name,
    parse_directory_name,
    parse_segment_filename,
    segment_filename,
)

topics = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True).filter(lambda name: name not in {".", ".."})


@given(st.integers(0, 2**63 - 1), st.sampled_from([".log", ".index", ".timeindex", ".txnindex", ".snapshot"]))
def test_a_segment_file_is_named_by_twenty_digits_and_read_back(base_offset: int, kind: str) -> None:
    name = segment_filename(base_offset, kind)
    assert len(name) == 20 + len(kind)
    assert parse_segment_filename(name) == SegmentFile(base_offset, kind, "")
    assert parse_segment_filename(name + ".deleted") == SegmentFile(base_offset, kind, ".deleted")


@pytest.mark.parametrize(
    "name",
    [
        "42.log",
        "00000000000000000042.lo",
        "00000000000000000042.log.bak",
        "99999999999999999999.log",
        "leader-epoch-checkpoint",
        "٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٠٤٢.log",
        "",
    ],
)
def test_a_foreign_file_name_is_nobodys_segment(name: str) -> None:
    assert parse_segment_filename(name) is None


@given(topics, st.integers(0, 2**31 - 1))
def test_a_partition_directory_is_read_back(topic: str, partition: int) -> None:
    named = TopicPartition(topic, partition)
    assert parse_directory_name(str(named)) == DirectoryName(named, DirectoryState.LIVE)


@given(topics, st.integers(0, 2**31 - 1), st.sampled_from(list(DirectoryState)[1:]))
def test_a_marked_directory_keeps_a_legal_length_and_its_state(
    topic: str, partition: int, state: DirectoryState
) -> None:
    name = marked_directory_name(TopicPartition(topic, partition), "0123456789abcdef" * 2, state)
    parsed = parse_directory_name(name)
    assert len(name) <= 255
    assert parsed is not None
    assert parsed.state is state
    assert parsed.partition.partition == partition
    assert topic.startswith(parsed.partition.topic)


@pytest.mark.parametrize(
    "name", ["orders", "orders-", "orders-x", "-1", "orders-01", "orders-99999999999", "a b-0", "..-0x", "-0"]
)
def test_a_name_that_is_no_partition_is_left_alone(name: str) -> None:
    assert parse_directory_name(name) is None
