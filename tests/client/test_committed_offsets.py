from __future__ import annotations

import pytest

from odradek.client.committed_offsets import (
    LAST_COMMIT_WITH_NAMES,
    LAST_FETCH_WITH_NAMES,
    MemberIdentity,
    OffsetAndMetadata,
    commit_request,
    committed_rows,
    fetch_request,
    response_of_group,
)
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import OffsetCommitRequest, OffsetFetchRequest, OffsetFetchResponse

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
MEMBER = MemberIdentity("member-1", 7, None)


def asked(request: OffsetFetchRequest, version: int) -> object:
    """The partitions that a request has on the wire; None for all."""
    decoded, _ = OffsetFetchRequest.decode(request.encode(version), version, 0)
    topics = decoded.groups[0].topics if version >= 8 else decoded.topics
    return None if topics is None else [(topic.name, topic.partition_indexes) for topic in topics]


@pytest.mark.parametrize("version", range(1, LAST_FETCH_WITH_NAMES + 1))
def test_every_version_asks_for_some_partitions(version):
    request = fetch_request(version, "billing", [SECOND, FIRST], MEMBER)
    assert asked(request, version) == [("orders", [0, 1])]


@pytest.mark.parametrize("version", range(2, LAST_FETCH_WITH_NAMES + 1))
def test_every_version_since_2_asks_for_all_partitions_or_for_none(version):
    assert asked(fetch_request(version, "billing", None), version) is None
    assert asked(fetch_request(version, "billing", []), version) == []


@pytest.mark.parametrize("version", range(1, LAST_FETCH_WITH_NAMES + 1))
def test_what_is_committed_is_read_from_every_version(version):
    kind = OffsetFetchResponse.Groups if version >= 8 else OffsetFetchResponse
    rows = [
        kind.Topics.Partitions(partition_index=0, committed_offset=5, metadata="noted"),
        kind.Topics.Partitions(partition_index=1, committed_offset=-1, error_code=3),
    ]
    reported = kind(topics=[kind.Topics(name="orders", partitions=rows)])
    answer = OffsetFetchResponse(groups=[reported]) if version >= 8 else reported
    decoded, _ = OffsetFetchResponse.decode(answer.encode(version), version, 0)
    first, second = committed_rows(response_of_group(version, decoded))
    assert (first.partition, first.committed, first.error_code) == (FIRST, OffsetAndMetadata(5, "noted"), 0)
    assert (second.partition, second.committed.offset, second.error_code) == (SECOND, -1, 3)


@pytest.mark.parametrize("version", range(2, LAST_COMMIT_WITH_NAMES + 1))
def test_every_version_commits(version):
    offsets = {FIRST: OffsetAndMetadata(5, "noted", leader_epoch=3), SECOND: OffsetAndMetadata(7)}
    request = commit_request(version, "billing", offsets, MEMBER)
    decoded, _ = OffsetCommitRequest.decode(request.encode(version), version, 0)
    assert (decoded.group_id, decoded.member_id) == ("billing", "member-1")
    assert decoded.generation_id_or_member_epoch == 7
    (topic,) = decoded.topics
    rows = [(row.partition_index, row.committed_offset, row.committed_metadata) for row in topic.partitions]
    assert (topic.name, rows) == ("orders", [(0, 5, "noted"), (1, 7, "")])
    assert topic.partitions[0].committed_leader_epoch == (3 if version >= 6 else -1)


def test_a_commit_without_a_member_has_no_generation():
    request = commit_request(9, "billing", {FIRST: OffsetAndMetadata(5)})
    assert (request.member_id, request.generation_id_or_member_epoch) == ("", -1)
