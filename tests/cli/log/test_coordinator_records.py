from __future__ import annotations

import json
import struct

from hypothesis import given
from hypothesis import strategies as st

from odradek.cli.log.coordinator_records import (
    DELETED,
    decode_group_record,
    decode_transaction_record,
    to_json,
)
from odradek.protocol.messages import (
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    GroupMetadataValue,
    TransactionLogKey,
    TransactionLogValue,
)
from odradek.records.record import Record


def a_record(key: bytes | None, value: bytes | None) -> Record:
    return Record(5, 0, key, value)


def coordinator_bytes(number: int, body: bytes) -> bytes:
    return struct.pack(">h", number) + body


def test_a_key_without_value_is_a_deletion() -> None:
    key, value = decode_group_record(
        a_record(coordinator_bytes(2, GroupMetadataKey(group="g").encode(0)), None)
    )
    assert key == '{"type":"2","data":{"group":"g"}}'
    assert value == DELETED


def test_tagged_fields_with_their_default_are_left_out_as_kafka_does() -> None:
    key = coordinator_bytes(0, TransactionLogKey(transactional_id="t").encode(0))
    plain = TransactionLogValue(producer_id=4, transaction_partitions=None)
    full = TransactionLogValue(producer_id=4, transaction_partitions=None, previous_producer_id=3)
    shown = [
        json.loads(decode_transaction_record(a_record(key, coordinator_bytes(1, value.encode(1))))[1] or "")
        for value in (plain, full)
    ]
    assert "previousProducerId" not in shown[0]["data"]
    assert list(shown[1]["data"])[:2] == ["producerId", "previousProducerId"]
    assert shown[0]["data"]["transactionPartitions"] is None


def test_a_subscription_that_cannot_be_read_stays_as_it_is() -> None:
    good = coordinator_bytes(0, ConsumerProtocolSubscription(topics=["a"]).encode(0))
    for subscription, expected in ((good, {"topics": ["a"], "userData": None}), (b"\7", "Bw=="), (b"", "")):
        member = GroupMetadataValue.Members(member_id="m", subscription=subscription)
        value = GroupMetadataValue(protocol_type="consumer", members=[member]).encode(3)
        key = coordinator_bytes(2, GroupMetadataKey(group="g").encode(0))
        _, shown = decode_group_record(a_record(key, coordinator_bytes(3, value)))
        assert json.loads(shown or "")["data"]["members"][0]["subscription"] == expected


def test_an_unknown_type_is_said_as_kafka_says_it() -> None:
    key, value = decode_group_record(a_record(coordinator_bytes(99, b""), b""))
    assert (key, value) == ("Unknown record type 99 at offset 5, skipping.", None)


def test_control_characters_are_escaped_in_capitals() -> None:
    assert to_json({"a": "\x1f\\u001f\x7f\u2028é"}) == '{"a":"\\u001F\\\\u001f\x7f\u2028é"}'


@given(key=st.none() | st.binary(max_size=40), value=st.none() | st.binary(max_size=60))
def test_any_bytes_get_a_line_and_no_exception(key: bytes | None, value: bytes | None) -> None:
    for decode in (decode_group_record, decode_transaction_record):
        shown, _ = decode(a_record(key, value))
        assert isinstance(shown, str)
