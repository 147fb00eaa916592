"""The same as read_process_write.py with the async clients: exactly once, also when it is killed.

python examples/read_process_write_async.py localhost:9092 orders invoices
"""

from __future__ import annotations

import asyncio
import sys

from odradek import AbortableTransactionError, AsyncConsumer, AsyncProducer, TopicPartition


async def run(bootstrap: str, source: str, target: str) -> None:
    """Read, process and write until the program is stopped."""
    group = f"{source} to {target}"
    async with (
        AsyncProducer(bootstrap_servers=bootstrap, transactional_id=group) as producer,
        AsyncConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            group_instance_id="worker 1",  # the next run takes over its partitions at once
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer,
    ):
        await producer.init_transactions()  # fences and aborts what an earlier run left open
        consumer.subscribe([source])
        while True:
            records = await consumer.poll(1.0)
            if not records:
                continue
            try:
                async with producer.transaction():
                    for record in records:
                        await producer.send(target, (record.value or b"").upper(), key=record.key)
                    offsets = {TopicPartition(one.topic, one.partition): one.offset + 1 for one in records}
                    await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            except AbortableTransactionError:
                for partition, committed in (await consumer.committed(consumer.assignment())).items():
                    if committed is None:
                        await consumer.seek_to_beginning([partition])
                    else:
                        consumer.seek(partition, committed)


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
