from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition, check_topic_name, uuid_from_text, uuid_to_text


def test_a_partition_prints_as_its_directory() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"


@pytest.mark.parametrize("name", ["orders", "a.b_c-d", "x" * 249, "...", "0"])
def test_legal_topic_names_pass(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "x" * 250, "ä", "a\n", "a\0"])
def test_illegal_topic_names_are_refused(name: str) -> None:
    with pytest.raises(KafkaError) as raised:
        check_topic_name(name)
    assert raised.value.error_code is ErrorCode.INVALID_TOPIC_EXCEPTION


@given(st.uuids())
def test_uuids_are_written_as_kafka_writes_them(uuid: UUID) -> None:
    text = uuid_to_text(uuid)
    assert len(text) == 22
    assert uuid_from_text(text) == uuid


@pytest.mark.parametrize("text", ["", "short", "!" * 22, "A" * 23, "A" * 24])
def test_a_text_that_is_no_uuid_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"uuid|bytes"):
        uuid_from_text(text)
