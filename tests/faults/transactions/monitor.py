"""Looks again and again at the ends of the partitions and the offset of the group, and records them."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from faults.cluster.worker import SILENT, Work, Worker
from odradek.testing.history.operations import Committed, Ends
from odradek.testing.history.recorder import now_ms

EVERY_SECONDS = 0.2
QUERY_SECONDS = 1.0


class Monitor(Worker):
    """`within_ms`: how long transactions may stay undecided where nothing is broken."""

    def __init__(self, work: Work, directory: Path, within_ms: int) -> None:
        super().__init__(work, directory)
        self._within_ms = within_ms

    def run(self) -> None:
        settings = {"bootstrap.servers": self.work.bootstrap, "group.id": self.work.group}
        everything = Consumer({**settings, "isolation.level": "read_uncommitted"}, logger=SILENT)
        decided = Consumer({**settings, "isolation.level": "read_committed"}, logger=SILENT)
        try:
            while not self.stopping.wait(EVERY_SECONDS):
                self._look_at_ends(everything, decided)
                self.look_at_offset(decided)
            while not self.look_at_offset(decided):
                time.sleep(EVERY_SECONDS)
        finally:
            everything.close()
            decided.close()

    def _look_at_ends(self, everything: Consumer, decided: Consumer) -> None:
        work = self.work
        for partition in range(work.partitions):
            place, began_ms = TopicPartition(work.topic, partition), now_ms()
            try:
                stable = decided.get_watermark_offsets(place, QUERY_SECONDS)[1]
                end = everything.get_watermark_offsets(place, QUERY_SECONDS)[1]
            except KafkaException:
                continue
            self.record(Ends(work.name, began_ms, work.topic, partition, stable, end, self._within_ms))

    def look_at_offset(self, consumer: Consumer) -> bool:
        """Whether the group's offset could be fetched: read_committed fetches wait until it is stable."""
        work, began_ms = self.work, now_ms()
        try:
            (row,) = consumer.committed([TopicPartition(work.topic, 0)], QUERY_SECONDS)
        except KafkaException:
            return False
        if row.error is not None:
            return False
        offset = -1 if row.offset == OFFSET_INVALID else row.offset
        self.record(Committed(work.name, began_ms, work.group, work.topic, 0, offset))
        return True
