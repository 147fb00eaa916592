"""A producer's settings: Kafka's defaults, and what contradicts what."""

from __future__ import annotations

import pytest

from odradek.client.producer.config import producer_config
from odradek.common.errors import ConfigError


def test_defaults_are_kafkas() -> None:
    config = producer_config({})

    assert config.enable_idempotence
    assert (config.acks, config.batch_size, config.linger_ms) == ("all", 16384, 5)
    assert (config.buffer_memory, config.max_block_ms, config.max_request_size) == (33554432, 60000, 1048576)
    assert (config.delivery_timeout_ms, config.max_in_flight_requests_per_connection) == (120000, 5)


@pytest.mark.parametrize("acks", [1, "1", 0])
def test_fewer_acks_turn_default_idempotence_off(acks: object) -> None:
    assert not producer_config({"acks": acks}).enable_idempotence


@pytest.mark.parametrize(
    ("name", "value"), [("acks", 1), ("retries", 0), ("max_in_flight_requests_per_connection", 6)]
)
def test_a_contradiction_of_idempotence_that_was_asked_for_is_named(name: str, value: int) -> None:
    with pytest.raises(ConfigError, match=f"enable_idempotence=True contradicts {name}={value}"):
        producer_config({"enable_idempotence": True, name: value})


def test_a_delivery_timeout_too_short_for_one_request_is_refused() -> None:
    with pytest.raises(ConfigError, match="delivery_timeout_ms=1000 is less than"):
        producer_config({"delivery_timeout_ms": 1000})


def test_a_longer_request_timeout_stretches_the_default_delivery_timeout() -> None:
    assert producer_config({"request_timeout_ms": 200_000}).delivery_timeout_ms == 200_005


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"acks": 2}, "acks"),
        ({"batch_size": 1000, "buffer_memory": 999}, "batch_size=1000 is more than buffer_memory=999"),
        ({"acks": True}, "acks"),
        ({"batchsize": 1}, "did you mean batch_size"),
        ({"linger.ms": 1}, "as a keyword it is linger_ms"),
        ({"compression_type": "brotli"}, "none, gzip, snappy, lz4, zstd"),
        ({"batch_size": "big"}, "batch.size"),
    ],
)
def test_a_wrong_setting_is_explained(keywords: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        producer_config(keywords)
