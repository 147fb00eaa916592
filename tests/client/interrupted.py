"""Clients on loan, interrupted by Ctrl-C again and again; a program, since only a main thread can be.

interrupted.py consumer|producer BOOTSTRAP TOPIC
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable

from odradek import Consumer, Producer, TopicPartition

SECONDS = 20
WARM_UP = 20
Sender = Producer[bytes, bytes]


def until_interrupted(act: Callable[[], object], after_s: float) -> None:
    """Do something again and again until Ctrl-C."""
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(after_s, signal.pthread_kill, (main, signal.SIGINT))
    try:
        timer.start()
        while True:
            act()
    except KeyboardInterrupt:
        timer.join()


def send(producer: Sender, topic: str, value: bytes) -> int:
    return producer.send(topic, value, partition=0).result(SECONDS).offset


def consume(producer: Sender, bootstrap: str, topic: str) -> None:
    """Everything is read once, in order."""
    values = [b"%d" % number for number in range(WARM_UP + 20)]
    read: list[bytes | None] = []
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])

        def take() -> None:
            read.extend(record.value for record in consumer.poll(SECONDS))

        for value in values[:WARM_UP]:
            send(producer, topic, value)
            take()
        for value in values[WARM_UP:]:
            until_interrupted(take, 0.005)
            send(producer, topic, value)
        while len(read) < len(values):
            take()
        connection = consumer._engine.brokers.open_connection(0, "fetch")
        assert connection is not None
        assert connection.loan is not None
        assert connection.loan.answers
    assert read == values, read


def produce(producer: Sender, topic: str) -> None:
    """Each Ctrl-C may have cost one offset its place in the list, not more, and nothing is left over."""
    offsets = [send(producer, topic, b"x") for _ in range(WARM_UP)]
    for _ in range(10):
        until_interrupted(lambda: offsets.append(send(producer, topic, b"x")), 0.003)
    assert producer.flush(SECONDS)
    last = send(producer, topic, b"last")
    assert offsets == sorted(set(offsets)), offsets
    assert offsets[-1] < last <= offsets[0] + len(offsets) + 10, (offsets[0], len(offsets), last)
    assert producer.statistics().buffered_bytes == 0
    connection = producer._engine._brokers.open_connection(0)
    assert connection is not None
    assert connection.loan is not None
    assert connection.loan.answers


def main(kind: str, bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, linger_ms=0) as producer:
        if kind == "consumer":
            consume(producer, bootstrap, topic)
        else:
            produce(producer, topic)


if __name__ == "__main__":
    main(*sys.argv[1:])
