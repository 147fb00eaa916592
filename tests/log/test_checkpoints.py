from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.ids import TopicPartition
from odradek.log.checkpoints import (
    MetaProperties,
    decode_meta_properties,
    decode_offsets,
    decode_partition_metadata,
    encode_clean_shutdown,
    encode_meta_properties,
    encode_offsets,
    encode_partition_metadata,
)

partitions = st.builds(
    TopicPartition, st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, 2**31 - 1)
)


def test_offsets_are_written_as_kafka_writes_them() -> None:
    offsets = {TopicPartition("orders", 1): 1187, TopicPartition("orders", 0): 1200}
    assert encode_offsets(offsets) == b"0\n2\norders 0 1200\norders 1 1187\n"


@given(st.dictionaries(partitions, st.integers(0, 2**63 - 1)))
def test_offsets_are_read_back(offsets: dict[TopicPartition, int]) -> None:
    assert decode_offsets(encode_offsets(offsets)) == offsets


def test_an_empty_checkpoint_as_kafka_creates_it_has_no_offsets() -> None:
    assert decode_offsets(b"") == {}


@pytest.mark.parametrize(
    "content",
    [b"1\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na 0 -5\n", b"\xff\xfe", b"0\n", b"0\n1\na x 1\n"],
)
def test_a_damaged_checkpoint_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        decode_offsets(content)


def test_partition_metadata_is_kafkas() -> None:
    content = b"version: 0\ntopic_id: pONhCLIzS7yZRRkfEM-hbA"
    topic_id = decode_partition_metadata(content)
    assert topic_id == UUID("a4e36108-b233-4bbc-9945-191f10cfa16c")
    assert encode_partition_metadata(topic_id) == content


@pytest.mark.parametrize("content", [b"", b"version: 1\ntopic_id: x", b"version: 0\n", b"topic_id", b"\xff"])
def test_damaged_partition_metadata_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        decode_partition_metadata(content)


def test_meta_properties_of_a_zookeeper_era_broker_are_read_back() -> None:
    properties = MetaProperties(3, "AAAAAAAAAAAAAAAAAAAAAQ", UUID(int=2**100))
    assert decode_meta_properties(encode_meta_properties(properties)) == properties


def test_meta_properties_of_a_kraft_broker_are_understood() -> None:
    content = (
        b"#\n#Sun Nov 15 21:46:55 UTC 2026\nnode.id=1\ndirectory.id=N4BIgWlalFUUgszB7d0JWA\nversion=1\n"
        b"cluster.id=AAAAAAAAAAAAAAAAAAAAAQ\n"
    )
    properties = decode_meta_properties(content)
    assert (properties.broker_id, properties.cluster_id, properties.version) == (1, "A" * 21 + "Q", 1)


@pytest.mark.parametrize(
    "content", [b"", b"version=7\nbroker.id=1\ncluster.id=x\n", b"version=0\n", b"=\xff"]
)
def test_damaged_meta_properties_are_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        decode_meta_properties(content)


def test_the_clean_shutdown_mark_is_kafkas() -> None:
    assert encode_clean_shutdown(12) == b'{"version":0,"brokerEpoch":12}'
