"""The settings of a producer, and which of them exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from odradek.client.config import ClientConfig, from_keywords
from odradek.common.config import INT_MAX, Importance, Kind, Valid, at_least, between, one_of, setting
from odradek.common.errors import ConfigError

MOST_IN_FLIGHT = 5
"""A broker keeps the metadata of the last five batches of a producer in each partition."""

_ACKS = {"0": 0, "1": 1, "-1": -1, "all": -1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig(ClientConfig):
    """The settings of a producer."""

    acks: str = setting(
        "acks",
        Kind.STRING,
        "all",
        "Which replicas must have a batch before it is delivered: 0, the leader (1), all in sync (all).",
        one_of("all", "-1", "0", "1"),
        importance=Importance.HIGH,
    )
    batch_size: int = setting(
        "batch.size",
        Kind.INT,
        16_384,
        "Bytes of records that go together, and up to 8 times as many behind batches that wait to be sent; "
        "a larger record goes alone.",
        at_least(0),
    )
    linger_ms: float = setting(
        "linger.ms",
        Kind.DOUBLE,
        5.0,
        "How long a batch that is not full waits for more records; parts of a millisecond count.",
        at_least(0),
    )
    buffer_memory: int = setting(
        "buffer.memory",
        Kind.LONG,
        33_554_432,
        "Bytes that may wait to be sent; when they are used up, send blocks.",
        at_least(1),
    )
    max_block_ms: int = setting(
        "max.block.ms", Kind.LONG, 60_000, "How long send may wait for memory and for metadata.", at_least(0)
    )
    max_request_size: int = setting(
        "max.request.size", Kind.INT, 1_048_576, "The largest size of a record and a request.", at_least(1)
    )
    max_in_flight_requests_per_connection: int = setting(
        "max.in.flight.requests.per.connection",
        Kind.INT,
        5,
        "Requests in flight to one broker; without idempotence, more than 1 can reorder.",
        at_least(1),
    )
    retries: int = setting(
        "retries",
        Kind.INT,
        INT_MAX,
        "How often a batch is sent again within delivery.timeout.ms.",
        between(0, INT_MAX),
    )
    delivery_timeout_ms: int = setting(
        "delivery.timeout.ms",
        Kind.INT,
        120_000,
        "After this time from send on a record that is not acknowledged has failed.",
        at_least(0),
    )
    enable_idempotence: bool = setting(
        "enable.idempotence",
        Kind.BOOLEAN,
        True,
        "Whether a retry can neither write a record twice nor reorder.",
    )
    transactional_id: str | None = setting(
        "transactional.id",
        Kind.STRING,
        None,
        "The name under which this producer has transactions; a later producer with the same one fences it.",
        Valid(lambda value: value is None or bool(value), "not empty"),
    )
    transaction_timeout_ms: int = setting(
        "transaction.timeout.ms",
        Kind.INT,
        60_000,
        "After this time the coordinator aborts a transaction that is still open.",
        at_least(1),
    )
    compression_type: str = setting(
        "compression.type",
        Kind.STRING,
        "none",
        "How batches are compressed.",
        one_of("none", "gzip", "snappy", "lz4", "zstd"),
    )
    compression_gzip_level: int = setting(
        "compression.gzip.level", Kind.INT, -1, "1 (fast) to 9 (small), -1: as usual.", between(-1, 9)
    )
    compression_lz4_level: int = setting(
        "compression.lz4.level", Kind.INT, 9, "1 to 17; 9 is the fast compressor.", between(1, 17)
    )
    compression_zstd_level: int = setting(
        "compression.zstd.level", Kind.INT, 3, "-131072 (fast) to 22 (small).", between(-131072, 22)
    )
    partitioner_ignore_keys: bool = setting(
        "partitioner.ignore.keys", Kind.BOOLEAN, False, "Whether the partitioner ignores the key of a record."
    )

    @property
    def required_acks(self) -> int:
        """Acks as the wire has it: -1 for all."""
        return _ACKS[self.acks]

    @property
    def compression_level(self) -> int | None:
        """The level of the codec that is used."""
        levels = {
            "gzip": self.compression_gzip_level,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }
        return levels.get(self.compression_type)


def producer_config(keywords: Mapping[str, Any]) -> ProducerConfig:
    """A producer's settings; ConfigError where two of them contradict each other."""
    keywords = dict(keywords)
    if isinstance(keywords.get("acks"), int) and not isinstance(keywords["acks"], bool):
        keywords["acks"] = str(keywords["acks"])
    config = from_keywords(ProducerConfig, keywords)
    if min(config.batch_size, config.max_request_size) > config.buffer_memory:
        raise ConfigError(
            f"batch_size={config.batch_size} is more than buffer_memory={config.buffer_memory}: "
            f"not even one batch would fit"
        )
    problem = _problem_of_idempotence(config)
    if config.transactional_id is not None and not (config.enable_idempotence and problem is None):
        reason = problem or "enable_idempotence=False: it needs True"
        raise ConfigError(f"transactional_id contradicts {reason}")
    if config.enable_idempotence and problem is not None:
        if "enable_idempotence" in keywords:
            raise ConfigError(f"enable_idempotence=True contradicts {problem}")
        config = replace(config, enable_idempotence=False)
    return _with_delivery_timeout(config, is_given="delivery_timeout_ms" in keywords)


def _problem_of_idempotence(config: ProducerConfig) -> str | None:
    """The setting that excludes idempotence, and the value it needs."""
    if config.required_acks != -1:
        return f"acks={config.acks}: it needs acks=all"
    if config.retries == 0:
        return "retries=0: it needs at least 1"
    if config.max_in_flight_requests_per_connection > MOST_IN_FLIGHT:
        given = config.max_in_flight_requests_per_connection
        return f"max_in_flight_requests_per_connection={given}: it needs at most {MOST_IN_FLIGHT}"
    return None


def _with_delivery_timeout(config: ProducerConfig, is_given: bool) -> ProducerConfig:
    shortest_ms = config.linger_ms + config.request_timeout_ms
    if config.delivery_timeout_ms >= shortest_ms:
        return config
    if is_given:
        raise ConfigError(
            f"delivery_timeout_ms={config.delivery_timeout_ms} is less than linger_ms + request_timeout_ms = "
            f"{shortest_ms:g}: a batch could not even be sent once"
        )
    return replace(config, delivery_timeout_ms=ceil(shortest_ms))
