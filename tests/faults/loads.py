"""Producers that go on while the broker dies and comes back, and remember what they were promised."""

from __future__ import annotations

import itertools
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from broker.wire import ClosedByBroker, WireClient, a_batch, a_produce, the_row
from odradek.protocol.api_key import ApiKey

Written = dict[int, list[tuple[int, bytes]]]
"""Per partition: offset and value."""


class Load(ABC):
    """A thread that produces to one topic until it is stopped."""

    def __init__(self, address: str, topic: str, partitions: int = 1) -> None:
        self.address = address
        self.topic = topic
        self.partitions = partitions
        self.acknowledged: Written = defaultdict(list)
        self.failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run_and_remember)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Send the rest and end; raises what went wrong on the way."""
        self._stopping.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), f"the producer to {self.topic} does not end"
        if self.failure is not None:
            raise self.failure

    @property
    def count(self) -> int:
        """How many records were acknowledged so far."""
        return sum(map(len, self.acknowledged.values()))

    def _run_and_remember(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self.failure = error

    @abstractmethod
    def _run(self) -> None:
        """Produce until stopped."""


class IdempotentLoad(Load):
    """librdkafka with acks=all and idempotence; what it was given arrives once and in order, or it fails."""

    def __init__(self, address: str, topic: str, partitions: int = 1, *, keys: int = 0, **settings: Any):
        super().__init__(address, topic, partitions)
        self.keys = keys
        self.given: dict[int, list[bytes]] = defaultdict(list)
        self._settings = {
            "bootstrap.servers": address,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 2,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 100,
            "retry.backoff.ms": 10,
            "topic.metadata.refresh.interval.ms": 1000,
            **settings,
        }

    def _run(self) -> None:
        producer = Producer(self._settings, logger=_SILENT)
        for number in itertools.count():
            if self._stopping.is_set():
                break
            partition, value = number % self.partitions, b"%d" % number
            key = b"key %d" % (number % self.keys) if self.keys else None
            self.given[partition].append(value)
            producer.produce(self.topic, value, key, partition, on_delivery=self._delivered)
            producer.poll(0)
            if number % 20 == 0:
                time.sleep(0.002)
            while len(producer) > 2000:
                producer.poll(0.01)
        assert producer.flush(60) == 0, f"{len(producer)} records to {self.topic} were never answered"

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failure = AssertionError(f"{self.topic}: {error}")
            return
        self.acknowledged[message.partition()].append((message.offset(), message.value()))


class _Silent:
    """librdkafka tells of every lost connection; here they are the point."""

    def log(self, *_: object) -> None:
        return None


_SILENT: Any = _Silent()


class PlainLoad(Load):
    """One batch after the other with acks=1, none sent twice: what was not answered may be there or not."""

    def __init__(self, address: str, topic: str) -> None:
        super().__init__(address, topic)
        self.sent: list[bytes] = []
        self._random = Random(topic)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                with WireClient(self.address) as client:
                    while not self._stopping.is_set():
                        self._send_one(client)
            except (ConnectionError, ClosedByBroker):
                time.sleep(0.01)

    def _send_one(self, client: WireClient) -> None:
        # Large enough that a kill may hit the middle of a write.
        size = self._random.choice((10, 1000, 100_000, 900_000))
        first = len(self.sent)
        values = [b"%d %s" % (first + index, bytes(size // 5)) for index in range(5)]
        self.sent += values
        row = the_row(client.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(*values), self.topic)))
        if row.error_code == 0:
            self.acknowledged[0] += [(row.base_offset + index, value) for index, value in enumerate(values)]
        time.sleep(0.005)


def read_back(address: str, topic: str, partitions: int = 1) -> Written:
    """Everything that a consumer finds in the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found: Written = defaultdict(list)
    ended: set[int] = set()
    deadline = time.monotonic() + 60
    while len(ended) < partitions:
        assert time.monotonic() < deadline, f"{topic}: only {ended} of {partitions} partitions have an end"
        for message in consumer.consume(5000, timeout=0.2):
            error = message.error()
            if error is None:
                found[message.partition()].append((message.offset(), message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise AssertionError(f"{topic}: {error}")
    consumer.close()
    return found
