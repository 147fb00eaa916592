from __future__ import annotations

from confluent_kafka import Producer

from broker.running import RunningBroker
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DescribeProducersRequest

Topic = DescribeProducersRequest.Topics


def describe(broker: RunningBroker, name: str, partition: int):
    asked = DescribeProducersRequest(topics=[Topic(name=name, partition_indexes=[partition])])
    (topic,) = broker.ask(ApiKey.DESCRIBE_PRODUCERS, 0, asked).topics
    (row,) = topic.partitions
    assert (topic.name, row.partition_index) == (name, partition)
    return row


def produce(broker: RunningBroker, count: int, *, is_idempotent: bool) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "enable.idempotence": is_idempotent})
    for number in range(count):
        producer.produce("orders", b"value", timestamp=1000 + number)
    assert producer.flush(20) == 0


def test_an_idempotent_producer_is_reported_with_its_last_sequence(broker):
    produce(broker, 5, is_idempotent=True)
    (producer,) = describe(broker, "orders", 0).active_producers
    assert (producer.producer_epoch, producer.last_sequence, producer.last_timestamp) == (0, 4, 1004)
    assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, -1)


def test_a_plain_producer_leaves_no_trace(broker):
    produce(broker, 5, is_idempotent=False)
    row = describe(broker, "orders", 0)
    assert (row.error_code, row.active_producers) == (0, [])


def test_an_unknown_partition_has_its_own_error(broker):
    produce(broker, 1, is_idempotent=True)
    assert describe(broker, "orders", 7).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(broker, "unknown", 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
