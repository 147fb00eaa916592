"""Producers that record what became of each record: librdkafka's and ours."""

from __future__ import annotations

import time
from collections.abc import Iterator

from confluent_kafka import KafkaError, Message
from confluent_kafka import Producer as ConfluentProducer

from faults.cluster.values import encode_value
from faults.cluster.worker import SILENT, Worker
from odradek.client.producer.producer import Producer
from odradek.testing.history.operations import Outcome, Send
from odradek.testing.history.recorder import now_ms

MOST_IN_FLIGHT = 2000
LAST_ANSWERS_SECONDS = 120


class _Producing(Worker):
    """Numbers, values and the rate."""

    idempotent = True
    ordered = True

    def numbers(self) -> Iterator[int]:
        """The next number each time that a record is due."""
        began = time.monotonic()
        for number in range(1_000_000_000):
            due = began + number / self.work.rate
            while (ahead := due - time.monotonic()) > 0:
                if self.stopping.wait(min(ahead, 0.05)):
                    return
            if self.stopping.is_set():
                return
            yield number

    def value(self, number: int) -> bytes:
        return encode_value(f"{self.work.name}-{number}", self.work.size)

    def sent(self, number: int, partition: int, outcome: Outcome, offset: int = -1) -> None:
        work = self.work
        value = f"{work.name}-{number}"
        self.record(
            Send(
                work.name,
                now_ms(),
                work.topic,
                partition,
                number,
                value,
                outcome,
                offset,
                self.idempotent,
                self.ordered,
            )
        )


class IdempotentConfluentProducer(_Producing):
    """librdkafka, acks=all, idempotence."""

    def settings(self) -> dict[str, object]:
        return {
            "bootstrap.servers": self.work.bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 5,
            "topic.metadata.refresh.interval.ms": 5000,
        }

    def run(self) -> None:
        producer = ConfluentProducer(self.settings(), logger=SILENT)
        for number in self.numbers():
            partition = number % self.work.partitions

            def delivered(error: KafkaError | None, message: Message, number: int = number) -> None:
                if error is not None:
                    self.sent(number, message.partition(), Outcome.UNKNOWN)
                else:
                    offset = message.offset()  # None where the broker found a duplicate
                    known = -1 if offset is None else offset
                    self.sent(number, message.partition(), Outcome.ACKNOWLEDGED, known)

            producer.produce(self.work.topic, self.value(number), partition=partition, on_delivery=delivered)
            producer.poll(0)
            while len(producer) > MOST_IN_FLIGHT:
                producer.poll(0.05)
        left = producer.flush(LAST_ANSWERS_SECONDS)
        if left:
            producer.purge()
            producer.flush(5)


class PlainConfluentProducer(IdempotentConfluentProducer):
    """librdkafka, acks=all, without idempotence: its retries may write a record twice or out of order."""

    idempotent = False
    ordered = False

    def settings(self) -> dict[str, object]:
        return {**super().settings(), "enable.idempotence": False}


class OurProducer(_Producing):
    """odradek's producer with its defaults: acks=all, idempotence."""

    def run(self) -> None:
        with Producer(
            bootstrap_servers=self.work.bootstrap, linger_ms=5, metadata_max_age_ms=5000
        ) as producer:
            for number in self.numbers():
                self._send(producer, number)
            producer.flush(LAST_ANSWERS_SECONDS)

    def _send(self, producer: Producer[bytes, bytes], number: int) -> None:
        partition = number % self.work.partitions

        def delivered(error: BaseException | None, metadata: object) -> None:
            if error is not None:
                self.sent(number, partition, Outcome.UNKNOWN)
            else:
                self.sent(number, partition, Outcome.ACKNOWLEDGED, metadata.offset)

        producer.send(self.work.topic, self.value(number), partition=partition, on_delivery=delivered)


PRODUCERS: dict[str, type[Worker]] = {
    "confluent idempotent": IdempotentConfluentProducer,
    "confluent plain": PlainConfluentProducer,
    "odradek producer": OurProducer,
}
