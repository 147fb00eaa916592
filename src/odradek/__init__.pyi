"""The public names for type checkers; __init__.py looks them up at first use."""

from odradek.client import broker_errors as broker_errors
from odradek.client.admin.admin import Admin as Admin
from odradek.client.admin.admin import AsyncAdmin as AsyncAdmin
from odradek.client.committed_offsets import OffsetAndMetadata as OffsetAndMetadata
from odradek.client.consumer.async_consumer import AsyncConsumer as AsyncConsumer
from odradek.client.consumer.consumer import Consumer as Consumer
from odradek.client.consumer.consumer_record import ConsumerRecord as ConsumerRecord
from odradek.client.consumer.errors import DeserializationFailed as DeserializationFailed
from odradek.client.consumer.errors import LogTruncated as LogTruncated
from odradek.client.consumer.errors import NoOffset as NoOffset
from odradek.client.consumer.interceptors import ConsumerInterceptor as ConsumerInterceptor
from odradek.client.consumer.subscription import RebalanceListener as RebalanceListener
from odradek.client.errors import BrokerError as BrokerError
from odradek.client.errors import ClientClosed as ClientClosed
from odradek.client.errors import ClientError as ClientError
from odradek.client.errors import DeadlineExceeded as DeadlineExceeded
from odradek.client.producer.async_producer import AsyncProducer as AsyncProducer
from odradek.client.producer.batches.batch import RecordMetadata as RecordMetadata
from odradek.client.producer.errors import BufferExhausted as BufferExhausted
from odradek.client.producer.errors import DeliveryTimedOut as DeliveryTimedOut
from odradek.client.producer.errors import RecordTooLarge as RecordTooLarge
from odradek.client.producer.errors import SerializationFailed as SerializationFailed
from odradek.client.producer.batches.record_preparation import Interceptor as Interceptor
from odradek.client.producer.batches.record_preparation import ProducerRecord as ProducerRecord
from odradek.client.producer.batches.partitioners import RoundRobinPartitioner as RoundRobinPartitioner
from odradek.client.producer.producer import Producer as Producer
from odradek.client.committed_offsets import ConsumerGroupMetadata as ConsumerGroupMetadata
from odradek.client.producer.batches.idempotence import ProducerId as ProducerId
from odradek.client.producer.transactions.driver import TransactionDriver as TransactionDriver
from odradek.client.producer.transactions.errors import AbortableTransactionError as AbortableTransactionError
from odradek.client.producer.transactions.errors import FatalTransactionError as FatalTransactionError
from odradek.client.producer.transactions.errors import ProducerFencedError as ProducerFencedError
from odradek.client.producer.transactions.errors import TransactionError as TransactionError
from odradek.client.producer.transactions.errors import TransactionStateError as TransactionStateError
from odradek.common.errors import ConfigError as ConfigError
from odradek.common.errors import KafkaError as KafkaError
from odradek.common.errors import OdradekError as OdradekError
from odradek.common.ids import TopicPartition as TopicPartition

__version__: str
__all__: list[str]
