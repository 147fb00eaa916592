"""The calls of a process that begins and ends transactions in which other processes write.

Low level: such as the driver of a Spark query, whose tasks write with `Producer.join_transaction`. A program
that writes by itself has all of this in `Producer`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Self, Unpack

from odradek.client.arguments import as_group, topic_partitions, with_metadata
from odradek.client.committed_offsets import ConsumerGroupMetadata, MemberIdentity, OffsetAndMetadata
from odradek.client.consumer.group.group_offsets import GroupOffsets
from odradek.client.coordinators import Coordinators
from odradek.client.network.background_loop import BackgroundLoop
from odradek.client.network.brokers import Brokers
from odradek.client.producer.batches.idempotence import ProducerId
from odradek.client.producer.config import producer_config
from odradek.client.producer.transactions.requests import NO_PRODUCER, TransactionRequests
from odradek.client.settings import ProducerSettings
from odradek.common.errors import ConfigError
from odradek.common.ids import TopicPartition


class TransactionDriver:
    """Transactions of one transactional id, by explicit calls; for any thread.

    with TransactionDriver(bootstrap_servers="localhost:9092", transactional_id="query 7") as driver:
        producer = driver.init_producer_id()
        ...  # tasks call join_transaction(producer) of a Producer, write and flush
        producer = driver.end_txn(producer)  # that of the next transaction

    Settings are those of a producer. Requests are repeated for at most `max_block_ms`; errors are those of
    the brokers (`odradek.broker_errors`), and DeadlineExceeded, after which a call may be repeated.
    """

    def __init__(self, **settings: Unpack[ProducerSettings]) -> None:
        self.config = producer_config(settings)
        if self.config.transactional_id is None:
            raise ConfigError("a TransactionDriver needs a transactional_id")
        self.transactional_id = self.config.transactional_id
        self._background = BackgroundLoop("transaction driver")
        self._brokers, self._requests = self._background.call(self._connect())

    async def _connect(self) -> tuple[Brokers, TransactionRequests]:
        brokers = Brokers(self.config, "transaction driver")
        return brokers, TransactionRequests(brokers, self.transactional_id, self.config.max_block_ms)

    def init_producer_id(self, current: ProducerId | None = None) -> ProducerId:
        """An id and an epoch that fence every earlier one; an open transaction of those is aborted.

        With `current` only its epoch is raised; PRODUCER_FENCED if another process has taken over.
        """
        work = self._requests.init_producer_id(self.config.transaction_timeout_ms, current or NO_PRODUCER)
        return self._background.call(work)

    def txn_offset_commit(
        self,
        producer: ProducerId,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        group: ConsumerGroupMetadata | str,
    ) -> None:
        """Make offsets of a group part of the transaction."""
        self._background.call(
            self._commit_offsets(ProducerId(*producer), with_metadata(offsets), as_group(group))
        )

    async def _commit_offsets(
        self,
        producer: ProducerId,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
    ) -> None:
        await self._requests.ensure_version()
        if not self._requests.uses_v2:
            await self._requests.add_offsets(producer, group.group_id)
        await self._requests.commit_offsets(producer, group, offsets)

    def end_txn(self, producer: ProducerId, *, commit: bool = True) -> ProducerId:
        """Commit or abort; returns the id and the epoch for the next transaction.

        A transaction into which nothing was written must not be ended: INVALID_TXN_STATE in transactions v1.
        """
        return self._background.call(self._end(ProducerId(*producer), commit=commit))

    async def _end(self, producer: ProducerId, *, commit: bool) -> ProducerId:
        await self._requests.ensure_version()
        return await self._requests.end(producer, commits=commit)

    def committed(
        self,
        group_id: str,
        partitions: Collection[TopicPartition] | None = None,
        *,
        require_stable: bool = True,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a group has committed; waits for open transactions that are about to change it.

        Without `partitions` all that the group has; a first commit that is about to come is then not seen.
        Without `require_stable` what was committed before those transactions.
        """
        wanted = None if partitions is None else topic_partitions(partitions)
        return self._background.call(self._committed(group_id, wanted, require_stable=require_stable))

    async def _committed(
        self, group_id: str, partitions: list[TopicPartition] | None, *, require_stable: bool
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        offsets = GroupOffsets(group_id, self._brokers, Coordinators(self._brokers))
        return await offsets.fetch(
            partitions,
            MemberIdentity,
            timeout_ms=self.config.max_block_ms,
            require_stable=require_stable,
        )

    def existing(self, partitions: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of the partitions that the cluster has; offsets of others cannot be committed."""
        return self._background.call(self._existing(topic_partitions(partitions)))

    async def _existing(self, partitions: list[TopicPartition]) -> frozenset[TopicPartition]:
        metadata = self._brokers.metadata

        async def ask() -> None:
            metadata.want({partition.topic for partition in partitions})
            metadata.mark_stale()
            await self._brokers.ensure_fresh()

        await self._brokers.retry("finding partitions", ask, timeout_ms=self.config.max_block_ms)
        topics = metadata.topics
        return frozenset(
            one for one in partitions if one.topic in topics and one.partition in topics[one.topic].partitions
        )

    def close(self) -> None:
        """Close the connections; an open transaction stays open until it times out."""
        self._background.close(self._brokers.close())

    def __enter__(self) -> Self:
        self._background.check()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
