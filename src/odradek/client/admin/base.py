"""The base of all parts of an admin client: connections, and requests to many brokers at once.

A call about several resources returns a dictionary whose values are results or errors: one topic that cannot
be created does not hide another that was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias, TypeVar

from odradek.client.broker_errors import NotController, broker_error
from odradek.client.config import ClientConfig
from odradek.client.errors import BrokerError, ClientClosed, DeadlineExceeded
from odradek.client.network.brokers import STALE_METADATA_ERRORS, Brokers
from odradek.client.network.connection import BrokerConnection
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition

Result = TypeVar("Result")
Key = TypeVar("Key")
ResultOrError: TypeAlias = Result | BrokerError
"""A result, or a broker's error in its place."""

CallLeader = Callable[
    [BrokerConnection, list[TopicPartition]], Awaitable[dict[TopicPartition, "ResultOrError[Result]"]]
]


class AdminBase:
    """The base class of the parts of an admin client. Lives on one loop."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self._made: Brokers | None = None
        self._is_closed = False

    @property
    def brokers(self) -> Brokers:
        """Created at first use, when a loop is running."""
        if self._is_closed:
            raise ClientClosed("admin client")
        if self._made is None:
            self._made = Brokers(self.config, "admin client")
        return self._made

    async def _by_leader(
        self,
        what: str,
        partitions: Iterable[TopicPartition],
        call: CallLeader[Result],
        timeout_ms: int | None,
    ) -> dict[TopicPartition, ResultOrError[Result]]:
        """Send a request to the leader of each partition, and again where the metadata was wrong."""
        brokers, left = self.brokers, set(partitions)
        outcomes: dict[TopicPartition, ResultOrError[Result]] = {}

        async def attempt() -> None:
            await brokers.ensure_fresh()
            unknown, by_node = self._leaders(left)
            outcomes.update(unknown)
            calls = [self._call_node(node_id, group, call) for node_id, group in by_node.items()]
            for part in await asyncio.gather(*calls):
                outcomes.update(part)
            left.difference_update(outcomes)
            for partition, outcome in list(outcomes.items()):
                if isinstance(outcome, BrokerError) and _is_moving(outcome):
                    del outcomes[partition]
                    left.add(partition)
            if left:
                raise broker_error(ErrorCode.LEADER_NOT_AVAILABLE, _leaderless(left))

        with brokers.metadata.holding({partition.topic for partition in left}):
            try:
                await brokers.retry(what, attempt, timeout_ms=timeout_ms)
            except DeadlineExceeded as over:
                if not isinstance(over.last, BrokerError):
                    raise
                outcomes.update(dict.fromkeys(left, over.last))
        return outcomes

    def _leaders(
        self, partitions: Iterable[TopicPartition]
    ) -> tuple[dict[TopicPartition, BrokerError], dict[int, list[TopicPartition]]]:
        """Partitions that do not exist, and the others by the broker that leads them."""
        metadata = self.brokers.metadata
        unknown: dict[TopicPartition, BrokerError] = {}
        by_node: dict[int, list[TopicPartition]] = {}
        for partition in sorted(partitions):
            topic = metadata.topics.get(partition.topic)
            view = metadata.leader(partition)
            if view is not None:
                by_node.setdefault(view.leader_id, []).append(partition)
            elif topic is None or partition.partition not in topic.partitions:
                missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                code = metadata.errors.get(partition.topic, missing)
                words = f"{partition} does not exist" if code == missing else str(partition)
                unknown[partition] = broker_error(code, words)
        return unknown, by_node

    async def _call_node(
        self, node_id: int, partitions: list[TopicPartition], call: CallLeader[Result]
    ) -> dict[TopicPartition, ResultOrError[Result]]:
        return await call(await self.brokers.connection(node_id), partitions)


def outcome_of(result: Result, error_code: int, message: str | None = None) -> ResultOrError[Result]:
    """The result unless there is an error."""
    return result if error_code == ErrorCode.NONE else broker_error(error_code, message)


def require(outcome: ResultOrError[Result]) -> Result:
    """The result; an error is raised."""
    if isinstance(outcome, BrokerError):
        raise outcome
    return outcome


def refuse_wrong_controller(outcomes: Mapping[Key, ResultOrError[Result]]) -> None:
    """Raise what the whole request must be repeated for."""
    for outcome in outcomes.values():
        if isinstance(outcome, NotController):
            raise outcome


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions of each topic, as requests have them."""
    grouped: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        grouped.setdefault(partition.topic, []).append(partition.partition)
    return grouped


def _is_moving(error: BrokerError) -> bool:
    is_gone = error.error_code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
    return error.is_retriable and error.error_code in STALE_METADATA_ERRORS and not is_gone


def _leaderless(partitions: Iterable[TopicPartition]) -> str:
    return f"no leader is known for {', '.join(str(partition) for partition in sorted(partitions))}"
