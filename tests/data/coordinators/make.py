"""Regenerates the internal topics beside this file: starts Apache Kafka, lets groups and transactions work.

    .venv/bin/python tests/data/coordinators/make.py [PORT]

Needs Java and `bench/peers/setup`. Each directory gets the partition's files as Kafka left them after a clean
stop, and `dump.txt`, what DumpLogSegments printed with the decoder of that topic.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

HERE = Path(__file__).parent
PEERS = HERE.parents[2] / "bench" / "peers"
BROKER_SETTINGS = (
    "transaction.state.log.num.partitions=1",
    "offsets.topic.num.partitions=1",
    "share.coordinator.state.topic.num.partitions=1",
    "share.coordinator.state.topic.replication.factor=1",
    "share.coordinator.state.topic.min.isr=1",
)
DECODERS = {"__consumer_offsets-0": "--offsets-decoder", "__transaction_state-0": "--transaction-log-decoder"}


def main(port: int) -> None:
    data = Path(tempfile.mkdtemp(prefix="coordinators-"))
    subprocess.run(
        [PEERS / "start", data, str(port), *BROKER_SETTINGS], check=True, stdout=subprocess.DEVNULL
    )
    servers = f"localhost:{port}"
    try:
        create_topic(servers)
        run_groups(servers)
        run_transactions(servers)
        run_share_group(servers)
    finally:
        subprocess.run([PEERS / "stop", data], check=True)
    for name, decoder in DECODERS.items():
        keep(data / "logs" / name, HERE / name, decoder)
    shutil.rmtree(data)


def create_topic(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    for created in admin.create_topics([NewTopic("orders", 3, 1)]).values():
        created.result()
    producer = Producer({"bootstrap.servers": servers})
    for i in range(30):
        producer.produce("orders", value=b"order %d" % i)
    producer.flush()


def consumer(servers: str, group: str, **settings: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        | {key.replace("_", "."): value for key, value in settings.items()}
    )


def run_groups(servers: str) -> None:
    """Members of both protocols join, commit and leave; a group without members; an offset deleted."""
    for group, settings in (
        ("classic", {"group_instance_id": "static-1", "client_id": "café"}),
        ("classic-cooperative", {"partition_assignment_strategy": "cooperative-sticky"}),
        ("modern", {"group_protocol": "consumer"}),
        ("modern-pattern", {"group_protocol": "consumer", "topic": "^ord.*"}),
    ):
        topic = settings.pop("topic", "orders")
        member = consumer(servers, group, **settings)
        member.subscribe([topic])
        assert member.poll(30) is not None
        member.commit(asynchronous=False)
        member.close()
    alone = consumer(servers, "alone")
    alone.commit(
        offsets=[TopicPartition("orders", 0, 7, metadata='a "note"', leader_epoch=0)], asynchronous=False
    )
    alone.close()
    admin = AdminClient({"bootstrap.servers": servers})
    for deleted in admin.delete_consumer_groups(["modern", "alone"]).values():
        deleted.result()


def run_transactions(servers: str) -> None:
    """Commit and abort, each with offsets of a group in the transaction."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "coordinators"})
    producer.init_transactions()
    reader = consumer(servers, "in-transactions")
    for number, ends in enumerate((producer.commit_transaction, producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce("orders", value=b"in a transaction")
        producer.send_offsets_to_transaction(
            [TopicPartition("orders", 1, number)], reader.consumer_group_metadata()
        )
        producer.flush()
        ends()
    reader.close()


def run_share_group(servers: str) -> None:
    """Java's console consumer reads one record as a member of a share group."""
    console = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
    options = ["--topic", "orders", "--group", "shared", "--max-messages", "1", "--timeout-ms", "5000"]
    subprocess.run(
        [PEERS / "run-class", console, "--bootstrap-server", servers, *options],
        check=False,  # the record's wait may end without one; the member's records are what matters
        stdout=subprocess.DEVNULL,
    )


def keep(source: Path, target: Path, decoder: str) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.deleted"))
    logs = ",".join(str(path) for path in sorted(target.glob("*.log")))
    command = [PEERS / "run-class", "DumpLogSegments", decoder, "--files", logs]
    dump = subprocess.run(command, check=True, capture_output=True, text=True)
    (target / "dump.txt").write_text(dump.stdout.replace(f"{target}/", ""))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 19492)
