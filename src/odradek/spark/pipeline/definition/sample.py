"""The first values of a topic, by our consumer: what a schema is inferred from."""

from __future__ import annotations

import time

from odradek.client.consumer.consumer import Consumer
from odradek.common.ids import TopicPartition

WAIT_SECONDS = 10.0


def sample_values(bootstrap: str, topic: str, most: int) -> list[bytes | None]:
    """At most so many values from the beginning of a topic; fewer when it has no more."""
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        partitions = [TopicPartition(topic, number) for number in range(consumer.partitions_for(topic))]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        values: list[bytes | None] = []
        deadline = time.monotonic() + WAIT_SECONDS
        while len(values) < most and time.monotonic() < deadline:
            values.extend(record.value for record in consumer.poll(0.2))
            if all(consumer.position(one) >= ends[one] for one in partitions):
                break
    return values[:most]
