"""Readers that record every record: librdkafka's and ours, with an assignment of their own or in a group."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, Message
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import TopicPartition as ConfluentPartition

from faults.cluster.values import decode_value
from faults.cluster.worker import QUIET_SECONDS, SILENT, Worker
from odradek.client.consumer.consumer import Consumer
from odradek.client.consumer.subscription import RebalanceListener
from odradek.client.errors import is_retriable
from odradek.common.errors import OdradekError
from odradek.common.ids import TopicPartition
from odradek.testing.history.operations import Commit, Committed, Outcome, Poll, Read, WholeRead
from odradek.testing.history.recorder import now_ms

MOST_A_POLL = 500
QUERY_SECONDS = 10


class _Reading(Worker):
    """Polls until stopped, and then until nothing comes any more."""

    read_committed = False
    """Whether the rules of readers with isolation.level=read_committed hold for it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.session = 0

    def read_on(self) -> bool:
        """False once it was stopped and got nothing for a while."""
        return not self.stopping.is_set() or time.monotonic() - self._last_read < QUIET_SECONDS

    def polled(self, reads: list[Read], session: int) -> None:
        self._last_read = time.monotonic()
        self.record(
            Poll(self.work.name, now_ms(), session, tuple(reads), self.work.group, self.read_committed)
        )

    _last_read = 0.0

    def committed(self, began_ms: int, partition: int, offset: int, outcome: Outcome) -> None:
        work = self.work
        self.record(Commit(work.name, began_ms, now_ms(), work.group, work.topic, partition, offset, outcome))

    def fetched(self, began_ms: int, partition: int, offset: int) -> None:
        work = self.work
        self.record(Committed(work.name, began_ms, work.group, work.topic, partition, max(offset, -1)))


class ConfluentReader(_Reading):
    """librdkafka with all partitions assigned from the beginning."""

    def run(self) -> None:
        consumer = ConfluentConsumer(self.settings(), logger=SILENT)
        try:
            self.begin(consumer)
            while self.read_on():
                self._poll(consumer)
        finally:
            consumer.close()

    def settings(self) -> dict[str, object]:
        return {
            "bootstrap.servers": self.work.bootstrap,
            "group.id": self.work.group or "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 5000,
        }

    def begin(self, consumer: ConfluentConsumer) -> None:
        partitions = range(self.work.partitions)
        consumer.assign([ConfluentPartition(self.work.topic, number, 0) for number in partitions])

    def _poll(self, consumer: ConfluentConsumer) -> None:
        """Record what is there; a rebalance in between begins another session and another poll."""
        reads: list[Read] = []
        session = self.session
        while len(reads) < MOST_A_POLL:
            message = consumer.poll(0 if reads else 0.2)
            if message is None:
                break
            if message.error() is not None:
                self.on_error(message.error())
                continue
            if session != self.session:
                self._finish(consumer, reads, session)
                reads, session = [], self.session
            reads.append(_read(message))
        self._finish(consumer, reads, session)

    def _finish(self, consumer: ConfluentConsumer, reads: list[Read], session: int) -> None:
        if reads:
            self.polled(reads, session)
            self.after_poll(consumer, reads, session)

    def on_error(self, error: KafkaError) -> None:
        """Errors of connections and leaders pass; the history shows what they cost."""

    def after_poll(self, consumer: ConfluentConsumer, reads: list[Read], session: int) -> None:
        """Nothing to commit without a group."""


def _read(message: Message) -> Read:
    return Read(message.topic(), message.partition(), message.offset(), decode_value(message.value()))


class ConfluentMember(ConfluentReader):
    """librdkafka in a group; commits after every poll, when what it read is recorded."""

    def begin(self, consumer: ConfluentConsumer) -> None:
        consumer.subscribe([self.work.topic], on_assign=self._on_assign)

    def _on_assign(self, consumer: ConfluentConsumer, partitions: list[ConfluentPartition]) -> None:
        self.session += 1
        began_ms = now_ms()
        try:
            for row in consumer.committed(partitions, QUERY_SECONDS):
                if row.error is None:
                    self.fetched(began_ms, row.partition, -1 if row.offset == OFFSET_INVALID else row.offset)
        except KafkaException:
            return

    def after_poll(self, consumer: ConfluentConsumer, reads: list[Read], session: int) -> None:
        if session != self.session:
            return
        ends = {read.partition: read.offset + 1 for read in reads}
        rows = [ConfluentPartition(self.work.topic, number, end) for number, end in ends.items()]
        began_ms = now_ms()
        try:
            answered = consumer.commit(offsets=rows, asynchronous=False)
        except KafkaException:
            for number, end in ends.items():
                self.committed(began_ms, number, end, Outcome.UNKNOWN)
            return
        for row in answered or []:
            outcome = Outcome.ACKNOWLEDGED if row.error is None else Outcome.UNKNOWN
            self.committed(began_ms, row.partition, ends[row.partition], outcome)


class FinalReader(ConfluentReader):
    """Reads everything once, from the beginning to the end as it is now."""

    def run(self) -> None:
        consumer = ConfluentConsumer(self.settings(), logger=SILENT)
        try:
            self.begin(consumer)
            ends = {
                number: consumer.get_watermark_offsets(
                    ConfluentPartition(self.work.topic, number), QUERY_SECONDS
                )[1]
                for number in range(self.work.partitions)
            }
            self._read_up_to(consumer, ends)
        finally:
            consumer.close()

    def _read_up_to(self, consumer: ConfluentConsumer, ends: dict[int, int]) -> None:
        deadline = time.monotonic() + 120
        rows = [ConfluentPartition(self.work.topic, number) for number in ends]
        while any(row.offset < ends[row.partition] for row in consumer.position(rows) if ends[row.partition]):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{consumer.position(rows)} of {ends}")
            self._poll(consumer)
        self.record(WholeRead(self.work.name, now_ms(), self.work.topic))


class OurReader(_Reading):
    """odradek's consumer with all partitions assigned from the beginning."""

    def run(self) -> None:
        with Consumer(**self.settings()) as consumer:
            self.begin(consumer)
            while self.read_on():
                try:
                    records = consumer.poll(0.2)
                except OdradekError as error:
                    if not is_retriable(error):
                        raise
                    continue
                if records:
                    self.polled(
                        [
                            Read(row.topic, row.partition, row.offset, decode_value(row.value))
                            for row in records
                        ],
                        self.session,
                    )
                    self.after_poll(consumer, records)

    def settings(self) -> dict[str, Any]:
        return {
            "bootstrap_servers": self.work.bootstrap,
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "metadata_max_age_ms": 5000,
        }

    def begin(self, consumer: Consumer[bytes, bytes]) -> None:
        partitions = [TopicPartition(self.work.topic, number) for number in range(self.work.partitions)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)

    def after_poll(self, consumer: Consumer[bytes, bytes], records: list[Any]) -> None:
        """Nothing to commit without a group."""


class OurMember(OurReader, RebalanceListener):
    """odradek's consumer in a group; commits after every poll."""

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "group_id": self.work.group}

    def begin(self, consumer: Consumer[bytes, bytes]) -> None:
        consumer.subscribe([self.work.topic], listener=self)

    def on_partitions_assigned(self, partitions: Any) -> None:
        self.session += 1

    def on_partitions_revoked(self, partitions: Any) -> None:
        self.session += 1

    def on_partitions_lost(self, partitions: Any) -> None:
        self.session += 1

    def after_poll(self, consumer: Consumer[bytes, bytes], records: list[Any]) -> None:
        ends = {row.partition: row.offset + 1 for row in records}
        began_ms = now_ms()
        outcome = Outcome.ACKNOWLEDGED
        try:
            consumer.commit({TopicPartition(self.work.topic, number): end for number, end in ends.items()})
        except (OdradekError, TimeoutError):
            outcome = Outcome.UNKNOWN
        for number, end in ends.items():
            self.committed(began_ms, number, end, outcome)


READERS: dict[str, type[Worker]] = {
    "confluent reader": ConfluentReader,
    "confluent member": ConfluentMember,
    "final reader": FinalReader,
    "odradek reader": OurReader,
    "odradek member": OurMember,
}
