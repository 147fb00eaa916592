"""Clients that read directly, interrupted by Ctrl-C again and again; a program, for its main thread.

interrupted.py consumer|producer BOOTSTRAP TOPIC
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable

from odradek import Consumer, Producer, TopicPartition
from odradek.client.network.connection import BrokerConnection

SECONDS = 20
INTERRUPTIONS = 10
MOST_TRIES = 1000
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


def repeat_until_read_directly(
    act: Callable[[], object], connection: Callable[[], BrokerConnection | None]
) -> None:
    """Do something again and again until its answer was read by this thread itself."""

    def answers() -> int:
        there = connection()
        return there.direct_read.responses if there is not None and there.direct_read is not None else 0

    before = answers()
    for _ in range(MOST_TRIES):
        act()
        if answers() > before:
            return
    raise AssertionError("direct reading never started")


def send(producer: Sender, topic: str, value: bytes) -> int:
    return producer.send(topic, value, partition=0).result(SECONDS).offset


def consume(producer: Sender, bootstrap: str, topic: str) -> None:
    """Everything is read once, in order."""
    sent: list[bytes] = []
    read: list[bytes | None] = []
    with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])

        def take() -> None:
            read.extend(record.value for record in consumer.poll(SECONDS))

        def send_and_take() -> None:
            sent.append(b"%d" % len(sent))
            send(producer, topic, sent[-1])
            while len(read) < len(sent):
                take()

        for _ in range(INTERRUPTIONS):
            repeat_until_read_directly(
                send_and_take, lambda: consumer._engine.brokers.open_connection(0, "fetch")
            )
            until_interrupted(take, 0.005)
        send_and_take()
    assert read == sent, read


def produce(producer: Sender, topic: str) -> None:
    """Each Ctrl-C may have cost one offset its place in the list, not more, and nothing is left over."""
    offsets: list[int] = []
    for _ in range(INTERRUPTIONS):
        repeat_until_read_directly(
            lambda: offsets.append(send(producer, topic, b"x")),
            lambda: producer._engine._brokers.open_connection(0),
        )
        until_interrupted(lambda: offsets.append(send(producer, topic, b"x")), 0.003)
    assert producer.flush(SECONDS)
    last = send(producer, topic, b"last")
    assert offsets == sorted(set(offsets)), offsets
    assert offsets[-1] < last <= offsets[0] + len(offsets) + INTERRUPTIONS, (offsets[0], len(offsets), last)
    assert producer.statistics().buffered_bytes == 0


def main(kind: str, bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, linger_ms=0) as producer:
        if kind == "consumer":
            consume(producer, bootstrap, topic)
        else:
            produce(producer, topic)


if __name__ == "__main__":
    main(*sys.argv[1:])
