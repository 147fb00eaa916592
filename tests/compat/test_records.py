"""What one client library writes, every client library reads: bytes, headers, times, sizes, codecs."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from compat.clients.face import (
    CODECS,
    CREATE_TIME,
    LOG_APPEND_TIME,
    Record,
    TooLarge,
    as_received,
    without_time,
)

pytestmark = pytest.mark.slow

MIB = 1024 * 1024
# One record fills a batch of 1048588 bytes, Kafka's default limit: 61 for the batch, 3 + 3 for the varints of
# its two lengths, 4 for attributes, the two deltas and the null key, 1 for no headers.
DEFAULT_MAX_MESSAGE_BYTES = MIB + 12
LARGEST_VALUE_BYTES = DEFAULT_MAX_MESSAGE_BYTES - 61 - 3 - 3 - 4 - 1

ODD_ONES = (
    Record(b"value", b"key"),
    Record(b"no key"),
    Record(None, b"a tombstone"),
    Record(b"", b""),
    Record(b"headers", headers=(("a", b"1"), ("a", b"2"), ("ключ", b""))),
    Record(bytes(range(256)), b"\x00\xff", timestamp_ms=1_700_000_000_999),
    Record(b"an older one", timestamp_ms=1_600_000_000_000),
)
MANY = tuple(Record(b"value %d" % index, b"key %d" % index) for index in range(1000))


@pytest.mark.parametrize("codec", CODECS)
def test_what_one_client_writes_every_client_reads(client, clients, topic, codec):
    client.create_topic(topic)
    assert client.produce(topic, ODD_ONES, codec=codec) == list(range(len(ODD_ONES)))
    client.produce(topic, MANY, codec=codec)

    sent = as_received([*ODD_ONES, *MANY])
    for reader in clients.values():
        assert reader.consume(topic, len(sent)) == sent, reader.name
        # In the middle of a batch: the broker sends the whole of it, and the reader leaves out its beginning.
        assert reader.consume(topic, 100, start=500) == sent[500:600], reader.name


def test_key_value_and_header_may_all_be_null(clients, topic):
    writer = clients["confluent-kafka"]  # the others refuse to send such a record
    nothing = Record(None, None, headers=(("null", None),))
    writer.create_topic(topic)
    writer.produce(topic, [nothing])
    for reader in clients.values():
        assert reader.consume(topic, 1) == as_received([nothing]), reader.name


def test_all_codecs_live_in_one_partition(client, clients, topic):
    client.create_topic(topic)
    for codec in CODECS:
        client.produce(topic, ODD_ONES, codec=codec)
    sent = as_received(ODD_ONES * len(CODECS))
    for reader in clients.values():
        assert reader.consume(topic, len(sent)) == sent, reader.name


@pytest.mark.parametrize("codec", CODECS)
def test_the_broker_compresses_again_where_the_topic_says_so(clients, topic, codec):
    writer = clients["confluent-kafka"]
    writer.create_topic(topic, compression_type="uncompressed" if codec == "none" else codec)
    writer.produce(topic, ODD_ONES, codec="none" if codec == "gzip" else "gzip")
    for reader in clients.values():
        assert reader.consume(topic, len(ODD_ONES)) == as_received(ODD_ONES), reader.name


def test_a_record_of_one_mebibyte_is_taken_and_one_byte_more_is_refused(client, clients, topic):
    client.create_topic(topic)
    largest = Record(b"x" * LARGEST_VALUE_BYTES)
    assert client.produce(topic, [largest]) == [0]
    with pytest.raises(TooLarge):
        client.produce(topic, [Record(b"x" * (LARGEST_VALUE_BYTES + 1))])
    for reader in clients.values():
        assert reader.consume(topic, 1) == as_received([largest]), reader.name


def test_max_message_bytes_can_be_raised(client, clients, topic):
    client.create_topic(topic, max_message_bytes=str(3 * MIB))
    large = [Record(b"x" * 2 * MIB), Record(b"y" * 2 * MIB)]
    client.produce(topic, large)
    for reader in clients.values():
        assert reader.consume(topic, 2) == as_received(large), reader.name


def test_a_topic_may_keep_the_time_of_appending(client, clients, topic):
    client.create_topic(topic, message_timestamp_type="LogAppendTime")
    before_ms = time.time_ns() // 1_000_000
    client.produce(topic, ODD_ONES)
    after_ms = time.time_ns() // 1_000_000

    for reader in clients.values():
        received = reader.consume(topic, len(ODD_ONES))
        assert {one.timestamp_type for one in received} == {LOG_APPEND_TIME}
        assert all(before_ms <= one.record.timestamp_ms <= after_ms for one in received)
        assert without_time(received) == [replace(record, timestamp_ms=0) for record in ODD_ONES]


def test_the_first_record_that_is_not_older_is_found_by_its_time(client, topic):
    client.create_topic(topic)
    begin_ms = 1_700_000_000_000
    for hundred in range(3):
        times_ms = [begin_ms + 10 * (hundred * 100 + index) for index in range(100)]
        client.produce(topic, [Record(b"x" * 200, timestamp_ms=time_ms) for time_ms in times_ms])

    assert client.offset_at(topic, begin_ms - 1) == 0
    assert client.offset_at(topic, begin_ms + 1000) == 100
    assert client.offset_at(topic, begin_ms + 1001) == 101
    assert client.offset_at(topic, begin_ms + 2990) == 299
    assert client.offset_at(topic, begin_ms + 2991) is None


def test_earliest_and_latest_follow_what_is_there(client, topic):
    client.create_topic(topic)
    assert client.first_and_next_offset(topic) == (0, 0)
    client.produce(topic, ODD_ONES)
    assert client.first_and_next_offset(topic) == (0, len(ODD_ONES))

    assert client.delete_records(topic, 3) == 3
    assert client.first_and_next_offset(topic) == (3, len(ODD_ONES))
    (first,) = client.consume(topic, 1, start=None)
    assert (first.offset, first.record, first.timestamp_type) == (3, ODD_ONES[3], CREATE_TIME)
