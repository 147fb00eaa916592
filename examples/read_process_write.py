"""Reads a topic, transforms each record and writes it to another one: exactly once, also when it is killed.

python examples/read_process_write.py localhost:9092 orders invoices

The records of a batch and the offsets up to which they were read are committed in one transaction. After a
crash the next run continues at the committed offsets; what the last run had written without a commit is
aborted, and readers with isolation_level="read_committed" never see it.
"""

from __future__ import annotations

import sys

from odradek import AbortableTransactionError, Consumer, Producer, TopicPartition


def run(bootstrap: str, source: str, target: str) -> None:
    """Read, process and write until the program is stopped."""
    group = f"{source} to {target}"
    with (
        Producer(bootstrap_servers=bootstrap, transactional_id=group) as producer,
        Consumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            group_instance_id="worker 1",  # the next run takes over its partitions at once
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer,
    ):
        producer.init_transactions()  # fences and aborts what an earlier run left open
        consumer.subscribe([source])
        while True:
            records = consumer.poll(1.0)
            if not records:
                continue
            try:
                with producer.transaction():
                    for record in records:
                        producer.send(target, (record.value or b"").upper(), key=record.key)
                    offsets = {TopicPartition(one.topic, one.partition): one.offset + 1 for one in records}
                    producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            except AbortableTransactionError:
                for partition, committed in consumer.committed(consumer.assignment()).items():
                    if committed is None:
                        consumer.seek_to_beginning([partition])
                    else:
                        consumer.seek(partition, committed)


if __name__ == "__main__":
    run(*sys.argv[1:])
