"""The options of the sink, checked on the driver before any task starts.

option              meaning
kafka.*             a setting of the producer in Kafka's spelling; kafka.bootstrap.servers must be there
topic               where all rows go; it wins over a column named topic
includeTimestamp    whether the column timestamp becomes the time of the records (default: false)
includeHeaders      for reading, and without effect here: a column named headers is always written
delivery            exactly-once (the default), or at-least-once
queryName           the name of a query, which Spark puts here: the transactional id
checkpointLocation  where the checkpoint of a query is, which is put here as well
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from odradek.client.consumer.config import ConsumerConfig
from odradek.client.producer.config import ProducerConfig, producer_config
from odradek.common.errors import ConfigError
from odradek.spark.kafka_settings import boolean, check_names, kafka_settings

EXACTLY_ONCE = "exactly-once"
AT_LEAST_ONCE = "at-least-once"
TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000
"""What brokers allow at most unless configured otherwise: a transaction must outlast its micro-batch."""

NO_NAME = (
    'exactly once needs a name for the query, which is its transactional id: .queryName("…"), the same '
    "whenever it is started; or set delivery=at-least-once"
)

_OWN = ("topic", "includeTimestamp", "includeHeaders", "delivery")
_REFUSED = dict.fromkeys(("key.serializer", "value.serializer"), "cast key and value to string or binary")
_REFUSED["transactional.id"] = "the name of the query is its transactional id"


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The options of a sink. It is pickled and sent to the tasks."""

    producer: tuple[tuple[str, str], ...]  # keyword and text of each setting, sorted: also a producer's key
    topic: str | None
    includes_timestamp: bool
    delivery: str
    name: str | None
    checkpoint: str | None


def sink_options(options: Mapping[str, str], *, for_stream: bool = False) -> SinkOptions:
    """The options of one write; ConfigError names what is wrong and what to do."""
    given = {name.lower(): value for name, value in options.items()}
    check_names(given, {name.lower(): name for name in _OWN}, "writing")
    delivery = given.get("delivery", EXACTLY_ONCE)
    if delivery not in (EXACTLY_ONCE, AT_LEAST_ONCE):
        raise ConfigError(
            f"the option delivery is {delivery!r}; it must be {EXACTLY_ONCE} or {AT_LEAST_ONCE}"
        )
    check = _check_transactional if delivery == EXACTLY_ONCE else producer_config
    producer = kafka_settings(given, ProducerConfig, ConsumerConfig, _REFUSED, check)
    if delivery == EXACTLY_ONCE:
        producer.setdefault("transaction_timeout_ms", str(TRANSACTION_TIMEOUT_MS))
    name = given.get("queryname") or None
    if for_stream and delivery == EXACTLY_ONCE and name is None:
        raise ConfigError(NO_NAME)
    return SinkOptions(
        producer=tuple(sorted(producer.items())),
        topic=given.get("topic"),
        includes_timestamp=boolean("includeTimestamp", given.get("includetimestamp", "false")),
        delivery=delivery,
        name=name,
        checkpoint=given.get("checkpointlocation"),
    )


def exactly_once_options(options: Mapping[str, str]) -> SinkOptions:
    """The options of a write that is exactly once by its nature."""
    checked = sink_options(options)
    if checked.delivery != EXACTLY_ONCE:
        raise ConfigError(f"the option delivery is {checked.delivery!r}; here it is always {EXACTLY_ONCE}")
    return checked


def _check_transactional(settings: Mapping[str, str]) -> None:
    try:
        producer_config({**settings, "transactional_id": "any"})
    except ConfigError as error:
        if "transactional_id" not in str(error):
            raise
        reason = str(error).replace("transactional_id contradicts ", "")
        raise ConfigError(f"exactly once contradicts {reason}; or set delivery={AT_LEAST_ONCE}") from None
