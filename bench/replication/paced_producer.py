"""Producers that send small records to one partition all the time, and note each acknowledgement."""

from __future__ import annotations

import threading
import time
from itertools import pairwise
from typing import Protocol

from confluent_kafka import KafkaError, Message, Producer

from odradek.client.producer.producer import Producer as OurProducer

EVERY_SECONDS = 0.002
MOST_IN_FLIGHT = 5000


class SteadyProducer(Protocol):
    """A client: its acknowledgements in monotonic seconds."""

    acknowledged: list[float]

    def close(self) -> None: ...


class _Sending(threading.Thread):
    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(daemon=True)
        self.topic = topic
        self.partition = partition
        self.acknowledged: list[float] = []
        self.failed = 0
        self._ending = threading.Event()

    def close(self) -> None:
        self._ending.set()
        self.join(60)


class ConfluentSending(_Sending):
    """confluent-kafka with its defaults, but for acks=all and linger.ms=0."""

    def __init__(self, bootstrap: str, topic: str, partition: int) -> None:
        super().__init__(topic, partition)
        settings = {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0}
        self._producer = Producer(settings)
        self.start()

    def run(self) -> None:
        while not self._ending.is_set():
            if len(self._producer) < MOST_IN_FLIGHT:
                self._producer.produce(
                    self.topic, b"x" * 100, partition=self.partition, on_delivery=self._on_delivery
                )
            self._producer.poll(EVERY_SECONDS)
        self._producer.flush(30)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.append(time.monotonic())
        else:
            self.failed += 1


class OurSending(_Sending):
    """odradek's producer with its defaults."""

    def __init__(self, bootstrap: str, topic: str, partition: int) -> None:
        super().__init__(topic, partition)
        self._producer = OurProducer(bootstrap_servers=bootstrap)
        self._under_way = 0
        self.start()

    def run(self) -> None:
        while not self._ending.wait(EVERY_SECONDS):
            if self._under_way < MOST_IN_FLIGHT:
                self._under_way += 1
                self._producer.send(
                    self.topic, b"x" * 100, partition=self.partition, on_delivery=self._on_delivery
                )
        self._producer.close()

    def _on_delivery(self, error: BaseException | None, metadata: object) -> None:
        self._under_way -= 1
        if error is None:
            self.acknowledged.append(time.monotonic())
        else:
            self.failed += 1


CLIENTS = {"confluent-kafka": ConfluentSending, "odradek": OurSending}


def longest_gap(acknowledged: list[float], since: float) -> float:
    """Seconds of the longest time without an acknowledgement that ended after `since`."""
    return max((later - earlier for earlier, later in pairwise(acknowledged) if later >= since), default=0.0)
