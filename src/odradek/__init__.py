"""odradek: Kafka's commit log in Python.

from odradek import Admin, Consumer, Producer, TopicPartition, broker_errors

The names are looked up at first use, so that importing a low package costs nothing. `__init__.pyi` has them
for type checkers: an import here, even one that never runs, would make every package depend on the clients.
"""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0.dev0"

_DEFINED_IN = {
    "AbortableTransactionError": "odradek.client.producer.transactions.errors",
    "Admin": "odradek.client.admin.admin",
    "AsyncAdmin": "odradek.client.admin.admin",
    "AsyncConsumer": "odradek.client.consumer.async_consumer",
    "AsyncProducer": "odradek.client.producer.async_producer",
    "BrokerError": "odradek.client.errors",
    "BufferExhausted": "odradek.client.producer.errors",
    "ClientClosed": "odradek.client.errors",
    "ClientError": "odradek.client.errors",
    "ConfigError": "odradek.common.errors",
    "Consumer": "odradek.client.consumer.consumer",
    "ConsumerGroupMetadata": "odradek.client.committed_offsets",
    "ConsumerInterceptor": "odradek.client.consumer.interceptors",
    "ConsumerRecord": "odradek.client.consumer.consumer_record",
    "DeadlineExceeded": "odradek.client.errors",
    "DeliveryTimedOut": "odradek.client.producer.errors",
    "DeserializationFailed": "odradek.client.consumer.errors",
    "FatalTransactionError": "odradek.client.producer.transactions.errors",
    "Interceptor": "odradek.client.producer.batches.record_preparation",
    "KafkaError": "odradek.common.errors",
    "LogTruncated": "odradek.client.consumer.errors",
    "NoOffset": "odradek.client.consumer.errors",
    "OdradekError": "odradek.common.errors",
    "OffsetAndMetadata": "odradek.client.committed_offsets",
    "Producer": "odradek.client.producer.producer",
    "ProducerFencedError": "odradek.client.producer.transactions.errors",
    "ProducerId": "odradek.client.producer.batches.idempotence",
    "ProducerRecord": "odradek.client.producer.batches.record_preparation",
    "RebalanceListener": "odradek.client.consumer.subscription",
    "RecordMetadata": "odradek.client.producer.batches.batch",
    "RecordTooLarge": "odradek.client.producer.errors",
    "RoundRobinPartitioner": "odradek.client.producer.batches.partitioners",
    "SerializationFailed": "odradek.client.producer.errors",
    "TopicPartition": "odradek.common.ids",
    "TransactionDriver": "odradek.client.producer.transactions.driver",
    "TransactionError": "odradek.client.producer.transactions.errors",
    "TransactionStateError": "odradek.client.producer.transactions.errors",
}
_MODULES = {"broker_errors": "odradek.client.broker_errors"}
__all__ = ["__version__", *_DEFINED_IN, *_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name in _DEFINED_IN:
        found: object = getattr(import_module(_DEFINED_IN[name]), name)
    elif name in _MODULES:
        found = import_module(_MODULES[name])
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
