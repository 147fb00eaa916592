"""Waits until nothing is open any more in a topic."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

from faults.cluster.brokers import wait_for
from faults.cluster.worker import SILENT

PATIENCE_SECONDS = 60.0


def wait_until_decided(bootstrap: str, topic: str, partitions: int) -> None:
    """Until whatever is in the log now is committed or aborted, by its producer or by its time-out."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "ends"}
    places = [TopicPartition(topic, number) for number in range(partitions)]
    everything = Consumer({**settings, "isolation.level": "read_uncommitted"}, logger=SILENT)
    decided = Consumer({**settings, "isolation.level": "read_committed"}, logger=SILENT)
    ends: list[int] = []

    def have_ends() -> bool:
        ends[:] = [everything.get_watermark_offsets(place, PATIENCE_SECONDS)[1] for place in places]
        return True

    def are_reached() -> bool:
        stable = [decided.get_watermark_offsets(place, PATIENCE_SECONDS)[1] for place in places]
        return all(offset >= end for offset, end in zip(stable, ends, strict=True))

    wait_for(have_ends, "the partitions have leaders", PATIENCE_SECONDS)
    wait_for(are_reached, f"the last stable offsets are {ends}", PATIENCE_SECONDS)
    everything.close()
    decided.close()
