"""The options of the sink, checked on the driver before any task starts.

option              meaning
kafka.*             a setting of the producer in Kafka's spelling; kafka.bootstrap.servers must be there
topic               where all rows go; it wins over a column named topic
includeTimestamp    whether the column timestamp becomes the time of the records (default: false)
delivery            at-least-once, the only value there is
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.client.consumer.config import ConsumerConfig
from odradek.client.producer.config import ProducerConfig, producer_config
from odradek.common.errors import ConfigError
from odradek.spark.kafka_settings import boolean, check_names, kafka_settings

AT_LEAST_ONCE = "at-least-once"

_OWN = ("topic", "includeTimestamp", "includeHeaders", "delivery")
_REFUSED = dict.fromkeys(("key.serializer", "value.serializer"), "cast key and value to string or binary")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The options of a sink. It is pickled and sent to the tasks."""

    producer: tuple[tuple[str, str], ...]  # keyword and text of each setting, sorted: also a producer's key
    topic: str | None
    includes_timestamp: bool
    delivery: str


def sink_options(options: Mapping[str, str]) -> SinkOptions:
    """The options of one write; ConfigError names what is wrong and what to do."""
    given = {name.lower(): value for name, value in options.items()}
    check_names(given, {name.lower(): name for name in _OWN}, "writing")
    delivery = given.get("delivery", AT_LEAST_ONCE)
    if delivery != AT_LEAST_ONCE:
        raise ConfigError(
            f"the option delivery is {delivery!r}; {AT_LEAST_ONCE} is the only delivery into topics there is"
        )
    producer = kafka_settings(given, ProducerConfig, ConsumerConfig, _REFUSED, producer_config)
    return SinkOptions(
        producer=tuple(sorted(producer.items())),
        topic=given.get("topic"),
        includes_timestamp=boolean("includeTimestamp", given.get("includetimestamp", "false")),
        delivery=delivery,
    )
