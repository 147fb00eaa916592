"""Types of send_path.py for its callers; the class has no parameters at run time, when it is compiled."""

from typing import Any, Generic, TypeVar

from odradek.client.producer.batches.accumulator import Accumulator, OnDelivery
from odradek.client.producer.batches.batch import DeliveryFuture
from odradek.client.producer.sending.single_batch_sender import SingleBatchSender
from odradek.client.producer.batches.record_preparation import HeadersIn, ProducerRecord

Key = TypeVar("Key")
Value = TypeVar("Value")

class SendPath(Generic[Key, Value]):
    _accumulator: Accumulator
    _single_batch_sender: SingleBatchSender | None
    def __init__(self, accumulator: Accumulator, is_plain: bool) -> None: ...
    def send(
        self,
        topic: str,
        value: Value | None = None,
        key: Key | None = None,
        partition: int | None = None,
        headers: HeadersIn | None = None,
        timestamp: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> DeliveryFuture: ...
    def _send_now(self) -> None: ...
    def _send_general(
        self, given: ProducerRecord[Any, Any], on_delivery: OnDelivery | None
    ) -> DeliveryFuture: ...
