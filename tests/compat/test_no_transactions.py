"""Until transactions are offered, a client that asks for them stops at once, with an error that says so."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import KafkaException, Producer
from kafka import KafkaProducer
from kafka.errors import KafkaError as KafkaPythonError

PATIENCE_SECONDS = 10


def test_librdkafka(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t"})

    with pytest.raises(KafkaException) as refused:
        producer.init_transactions(PATIENCE_SECONDS)

    error = refused.value.args[0]
    assert error.fatal()
    assert "Transactions are not offered yet: leave transactional.id out" in error.str()


def test_aiokafka(bootstrap: str) -> None:
    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="t")
        try:
            with pytest.raises(AiokafkaError, match="ClusterAuthorizationFailed"):
                await asyncio.wait_for(producer.start(), PATIENCE_SECONDS)
        finally:
            await producer.stop()

    asyncio.run(main())


def test_kafka_python(bootstrap: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, transactional_id="t", max_block_ms=1000 * PATIENCE_SECONDS
    )
    try:
        with pytest.raises(KafkaPythonError, match="ClusterAuthorizationFailed"):
            producer.init_transactions()
    finally:
        producer.close(timeout=1)
