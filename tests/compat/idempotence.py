"""What a broker answers an idempotent producer after its partition was led anew, emptied or damaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka import TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
    ResourceType,
)

from broker.wire import WireClient, a_batch, a_produce, the_row
from faults.cluster.brokers import Brokers, wait_for
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey

PRODUCE_VERSION = 9
PRODUCER_ID = 777_000
WRITTEN = 8
"""Batches of one record that are written before: more than the five that a broker remembers."""
PATIENCE_SECONDS = 60.0

RETENTION_SETTINGS = {"log_retention_check_interval_ms": "500"}
"""Kafka waits for half a minute before its first look, unless configured."""
KAFKA_SETTINGS = RETENTION_SETTINGS | {"log_initial_task_delay_ms": "500"}


class BrokerAnswer(NamedTuple):
    """Of one Produce request: what was sent, the error and the offset, -1 with an error."""

    compared: str
    error: str
    offset: int


class Partition:
    """The only partition of a topic, asked through whichever broker leads it."""

    def __init__(self, brokers: Brokers, topic: str, replicas: int) -> None:
        self.brokers = brokers
        self.topic = topic
        brokers.create_topic(topic, 1, replicas)

    @property
    def leader(self) -> int:
        return self.brokers.leader(self.topic)

    def produce(self, epoch: int, sequence: int) -> tuple[str, int]:
        """Again and again while there is no leader."""
        batch = a_batch(b"x", producer_id=PRODUCER_ID, producer_epoch=epoch, base_sequence=sequence)
        answers: list[tuple[ErrorCode, int]] = []

        def is_answered() -> bool:
            node = self.brokers.nodes.get(self.leader)
            if node is None or node.broker_id not in self.brokers.running:
                return False
            with WireClient(node.address) as client:
                row = the_row(
                    client.ask(ApiKey.PRODUCE, PRODUCE_VERSION, a_produce(batch, self.topic, acks=-1))
                )
            answers.append((ErrorCode(row.error_code), row.base_offset))
            return not answers[-1][0].is_retriable or answers[-1][0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

        wait_for(is_answered, "the leader answers", PATIENCE_SECONDS)
        code, offset = answers[-1]
        return code.name, offset

    def offset(self, spec: OffsetSpec) -> int:
        place = TopicPartition(self.topic, 0)
        return int(self.brokers.admin.list_offsets({place: spec})[place].result(PATIENCE_SECONDS).offset)

    def drop_snapshots(self, broker_id: int) -> None:
        """Of a broker that does not run."""
        directory = self.brokers.nodes[broker_id].log_dir / f"{self.topic}-0"
        snapshots = list(directory.glob("*.snapshot"))
        assert snapshots, f"{directory} has no snapshot to lose"
        for path in snapshots:
            path.unlink()

    def restart(self, *, kills: bool, without_snapshots: bool = False) -> None:
        leader = self.leader
        (self.brokers.kill if kills else self.brokers.terminate)(leader)
        if without_snapshots:
            self.drop_snapshots(leader)
        self.brokers.start(leader)
        self.brokers.wait_in_sync([self.topic])


def led_anew(partition: Partition) -> None:
    leader = partition.leader
    partition.brokers.kill(leader)
    wait_for(lambda: partition.leader not in (-1, leader), "another broker leads", PATIENCE_SECONDS)


def stopped(partition: Partition) -> None:
    partition.restart(kills=False)


def killed(partition: Partition) -> None:
    partition.restart(kills=True)


def records_deleted(partition: Partition) -> None:
    end = partition.offset(OffsetSpec.latest())
    place = TopicPartition(partition.topic, 0, end)
    partition.brokers.admin.delete_records([place])[place].result(PATIENCE_SECONDS)


def records_deleted_then_stopped(partition: Partition) -> None:
    records_deleted(partition)
    stopped(partition)


def expired(partition: Partition) -> None:
    """Retention takes every segment, the active one too."""
    end = partition.offset(OffsetSpec.latest())
    entry = ConfigEntry("retention.ms", "1", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, partition.topic, incremental_configs=[entry])
    partition.brokers.admin.incremental_alter_configs([resource])[resource].result(PATIENCE_SECONDS)
    wait_for(
        lambda: partition.offset(OffsetSpec.earliest()) == end, "retention took all records", PATIENCE_SECONDS
    )


def snapshots_lost_at_a_kill(partition: Partition) -> None:
    """The log is read again."""
    stopped(partition)
    partition.restart(kills=True, without_snapshots=True)


def snapshots_lost_and_expired(partition: Partition) -> None:
    """The broker has no state of the producer any more."""
    stopped(partition)
    expired(partition)
    partition.restart(kills=True, without_snapshots=True)


REPLICATED = (led_anew,)
CAUSES: dict[str, Callable[[Partition], None]] = {
    cause.__name__: cause
    for cause in (
        stopped,
        killed,
        records_deleted,
        records_deleted_then_stopped,
        expired,
        snapshots_lost_at_a_kill,
        snapshots_lost_and_expired,
        led_anew,
    )
}
QUESTIONS: tuple[tuple[str, int, int], ...] = (
    ("the last one again", 0, WRITTEN - 1),
    ("the fifth last again", 0, WRITTEN - 5),
    ("the sixth last again", 0, WRITTEN - 6),
    ("a gap", 0, WRITTEN + 12),
    ("the next epoch, not from 0", 1, 5),
    ("the next one", 0, WRITTEN),
    ("the next one again", 0, WRITTEN),
    ("the next epoch", 1, 0),
    ("the next epoch again", 1, 0),
    ("the old epoch", 0, WRITTEN + 1),
)
"""What is asked, with its epoch and sequence, in this order."""


def expected(*, known: int) -> list[BrokerAnswer]:
    """The answers of a broker that knows so many of the last batches; 0 if it does not know the producer."""
    unknown_sequence = ("OUT_OF_ORDER_SEQUENCE_NUMBER", -1)
    first_new = WRITTEN if known else WRITTEN + 1
    found = [
        ("NONE", WRITTEN - 1 if known else WRITTEN),
        ("NONE", WRITTEN - 5) if known == 5 else unknown_sequence,
        unknown_sequence,
        unknown_sequence,
        unknown_sequence,
        ("NONE", first_new),
        ("NONE", first_new),
        ("NONE", first_new + 1),
        ("NONE", first_new + 1),
        ("INVALID_PRODUCER_EPOCH", -1),
    ]
    return [BrokerAnswer(row[0], *answer) for row, answer in zip(QUESTIONS, found, strict=True)]


def answers(brokers: Brokers, cause: str) -> list[BrokerAnswer]:
    """What a producer is answered after this; the brokers run again afterwards."""
    partition = Partition(brokers, cause, 3 if CAUSES[cause] in REPLICATED else 1)
    for sequence in range(WRITTEN):
        assert partition.produce(0, sequence) == ("NONE", sequence)
    CAUSES[cause](partition)
    answered = [
        BrokerAnswer(compared, *partition.produce(epoch, sequence)) for compared, epoch, sequence in QUESTIONS
    ]
    for broker_id in sorted(set(brokers.nodes) - brokers.running):
        brokers.start(broker_id)
    return answered
