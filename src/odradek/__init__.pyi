"""The public names for type checkers; __init__.py looks them up at first use."""

from odradek.client.admin.admin import Admin as Admin
from odradek.client.admin.admin import AsyncAdmin as AsyncAdmin
from odradek.client.consumer.async_consumer import AsyncConsumer as AsyncConsumer
from odradek.client.consumer.consumer import Consumer as Consumer
from odradek.client.producer.async_producer import AsyncProducer as AsyncProducer
from odradek.client.producer.producer import Producer as Producer
from odradek.common.ids import TopicPartition as TopicPartition

__version__: str
__all__: list[str]
