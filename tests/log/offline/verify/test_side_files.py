from __future__ import annotations

import pytest

from odradek.common.ids import TopicPartition
from odradek.log.leader_epochs import EpochEntry
from odradek.log.offline.verify.side_files import (
    Damaged,
    check_clean_shutdown,
    check_meta_properties,
    read_epochs,
    read_offsets,
    read_topic_id,
)


def test_checkpoints_are_read_with_the_place_of_each_line() -> None:
    assert read_epochs(b"0\n2\n0 0\n3 120\n") == [EpochEntry(0, 0), EpochEntry(3, 120)]
    assert read_offsets(b"0\n1\nmy.topic 7 1200\n") == [(4, TopicPartition("my.topic", 7), 1200)]
    assert read_offsets(b"") == []


@pytest.mark.parametrize(
    "content",
    [
        b"1\n0\n",
        b"0\n1\n",
        b"0\n1\n0 0",
        b"0\n1\n0 0\x0b",
        b"0\n2\n0 0\r3 9\n",
        b"0\n1\n0  0\n",
        b"0\n1\n00 0\n",
        b"0\n1\n1_0 0\n",
        b"0\n1\n+1 0\n",
    ],
)
def test_what_a_parser_would_forgive_is_damage(content: bytes) -> None:
    with pytest.raises(Damaged):
        read_epochs(content)


def test_a_partition_that_is_there_twice_is_damage() -> None:
    with pytest.raises(Damaged, match="orders-1 is there twice") as raised:
        read_offsets(b"0\n2\norders 1 5\norders 1 5\n")
    assert raised.value.position == 15


def test_epochs_that_do_not_rise_are_damage() -> None:
    with pytest.raises(Damaged, match="rise"):
        read_epochs(b"0\n2\n3 0\n1 120\n")


def test_a_topic_id_has_one_spelling() -> None:
    content = b"version: 0\ntopic_id: USLxktsYSAGKhRAew5f6mw"
    read_topic_id(content)
    for damaged in (content[:-1] + b"x", content[:-1], b"version: 1" + content[10:], b"\xff" + content):
        with pytest.raises(Damaged):
            read_topic_id(damaged)


def test_kafkas_own_marks_are_fine() -> None:
    check_meta_properties(
        b"#\n#Sun Nov 15 22:14:00 UTC 2026\nversion=1\nnode.id=1\n"
        b"cluster.id=x\ndirectory.id=N4BIgWlalFUUgszB7d0JWA\n"
    )
    check_clean_shutdown(b'{"version":0,"brokerEpoch":12}')
    check_clean_shutdown(b"")


@pytest.mark.parametrize(
    "content", [b"version=0\nbroker.id=1\n", b"version=0\nbroker.id=1\ncluster.id=x\nclustes=y\n", b"\xff"]
)
def test_a_mark_without_its_owner_is_damage(content: bytes) -> None:
    with pytest.raises(Damaged):
        check_meta_properties(content)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"version":1}', b'{"version":0,"brokerEpocg":12}'])
def test_a_clean_mark_of_another_form_is_damage(content: bytes) -> None:
    with pytest.raises(Damaged):
        check_clean_shutdown(content)
