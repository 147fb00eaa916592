"""The part of a consumer that runs on a loop: assignment, positions, fetching, the group."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from odradek.client.broker_errors import broker_error
from odradek.client.committed_offsets import ConsumerGroupMetadata, MemberIdentity, OffsetAndMetadata
from odradek.client.consumer.config import ConsumerConfig
from odradek.client.consumer.errors import LogTruncated, NoOffset, NotSubscribed
from odradek.client.consumer.fetch.fetch_buffer import FetchBuffer
from odradek.client.consumer.fetch.fetcher import Fetcher
from odradek.client.consumer.fetch.offset_lookup import OffsetAndTimestamp, list_offsets
from odradek.client.consumer.fetch.truncation import LeaderEpochEnd
from odradek.client.consumer.group.group_offsets import GroupOffsets
from odradek.client.consumer.group.heartbeat_membership import HeartbeatMembership
from odradek.client.consumer.group.membership import ClassicMembership
from odradek.client.consumer.offset_reset import time_to_begin
from odradek.client.consumer.positions import LATEST, NO_EPOCH, PartitionPosition
from odradek.client.consumer.subscription import RebalanceListener, SubscriptionType
from odradek.client.coordinators import Coordinators
from odradek.client.errors import BrokerError, ClientError, DeadlineExceeded, is_retriable
from odradek.client.network.brokers import Brokers
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition

REFUSED_TOPICS = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION})

_log = logging.getLogger("odradek.consumer")

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
States = Mapping[TopicPartition, PartitionPosition]
Release = Callable[[States, Collection[TopicPartition]], Offsets]
"""Called during a poll: stops returning records of these partitions, and returns their positions."""

# Errors of a commit during a rebalance.
BETWEEN_GENERATIONS = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})


class ConsumerEngine:
    """Keeps `states` assigned and fetched, on one loop; `fetch_buffer` is read by the user's thread."""

    def __init__(
        self,
        config: ConsumerConfig,
        fetch_buffer: FetchBuffer,
        release: Release,
        on_committed: Callable[[Offsets], None],
    ) -> None:
        self.config = config
        self.fetch_buffer = fetch_buffer
        self.states: dict[TopicPartition, PartitionPosition] = {}
        self.brokers = Brokers(config, "consumer", creates_topics=config.allow_auto_create_topics)
        self.brokers.metadata.on_update = self._check_topic_errors
        self.polled_ms = time.monotonic() * 1000
        self._missing: Counter[str] = Counter()
        self._looking: asyncio.TimerHandle | None = None
        self._release = release
        self._on_committed = on_committed
        self._subscription = SubscriptionType()
        self._fetcher = Fetcher(
            config,
            self.brokers,
            self.states,
            fetch_buffer,
            reset=self._out_of_range,
            truncated=self._truncated,
        )
        self._offsets: GroupOffsets | None = None
        self._member: ClassicMembership | HeartbeatMembership | None = None
        self._running: asyncio.Task[None] | None = None
        self._finding: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._commits: set[asyncio.Task[None]] = set()
        if config.group_id is not None:
            self._offsets = GroupOffsets(config.group_id, self.brokers, Coordinators(self.brokers))

    # Subscription and assignment.

    def subscribe(
        self, topics: Iterable[str], pattern: str | re.Pattern[str] | None, listener: RebalanceListener | None
    ) -> None:
        """Share topics with the group."""
        if self._offsets is None:
            raise NotSubscribed("subscribe() needs a group_id; without a group, assign() partitions")
        self.fetch_buffer.fatal = None
        is_new = self.config.group_protocol == "consumer"
        self._subscription.subscribe(topics, pattern, listener, broker_matches=is_new)
        self.brokers.metadata.want(self._subscription.topics)
        self.brokers.metadata.want_all(pattern is not None)
        if pattern is not None and self._watching is None:
            self._watching = asyncio.create_task(self._watch_topics())
        if self._member is None:
            kind = HeartbeatMembership if is_new else ClassicMembership
            self._member = kind(self.config, self.brokers, self._offsets, self)
            self._running = asyncio.create_task(self._run(self._member))
        else:
            self._member.rejoin()

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read exactly these partitions, without a group's help."""
        self._subscription.assign()
        self.brokers.metadata.want({partition.topic for partition in partitions})
        for gone in self.states.keys() - set(partitions):
            self.states.pop(gone).lose_position()
        for partition in partitions:
            self.states.setdefault(partition, PartitionPosition(*partition))
        self.pump()

    def assign_range(self, partition: TopicPartition, start: int, end: int) -> None:
        """Read exactly this partition, from `start` on, and fetch nothing more once `end` is reached."""
        self._subscription.assign()
        self.brokers.metadata.want({partition.topic})
        for state in self.states.values():
            state.lose_position()
        self.states.clear()
        state = self.states[partition] = PartitionPosition(*partition)
        state.fetch_end = end
        state.seek(start)
        self.fetch_buffer.errors.clear()
        self.pump()

    async def unsubscribe(self) -> None:
        """Leave the group and drop all partitions."""
        await self._stop_member("unsubscribed")
        for state in self.states.values():
            state.lose_position()
        self.states.clear()
        self._subscription.clear()
        self.fetch_buffer.fatal = None

    async def _run(self, member: ClassicMembership | HeartbeatMembership) -> None:
        try:
            await member.run()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.fetch_buffer.end(error)

    async def _watch_topics(self) -> None:
        """Refresh the metadata regularly, to match the pattern with new topics."""
        while True:
            await asyncio.sleep(min(self.config.metadata_max_age_ms, 300_000) / 1000)
            self.brokers.metadata.mark_stale()
            self.pump()

    @property
    def is_subscribed(self) -> bool:
        """Whether there is anything to wait for: topics of a group, or partitions by choice."""
        return self._subscription.is_group or self._subscription.is_manual

    def subscription(self) -> set[str]:
        """The subscribed topics; for a pattern that the broker matches, those of the assignment."""
        by_broker = {topic for topic, _ in self.states} if self._subscription.regex is not None else set()
        return by_broker | self.topics()

    # `GroupOwner`, called by the membership.

    def topics(self) -> frozenset[str]:
        """The subscribed topics."""
        return self._subscription.matching(
            self.brokers.metadata, excludes_internal=self.config.exclude_internal_topics
        )

    def topic_regex(self) -> str | None:
        """The pattern that the broker matches."""
        return self._subscription.regex

    def assigned(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return frozenset(self.states)

    def poll_deadline_ms(self) -> float:
        """The deadline of the next poll."""
        return self.polled_ms + self.config.max_poll_interval_ms

    async def revoke(self, partitions: Collection[TopicPartition], *, is_lost: bool) -> None:
        """Revoke partitions: commit what was processed, call the listener, stop reading."""
        if not partitions:
            return
        listener, gone = self._subscription.listener, sorted(partitions)
        if is_lost:
            self._drop(gone)
            if listener is not None:
                await self.fetch_buffer.call(lambda: listener.on_partitions_lost(gone))
            return
        # Only during a poll has the user surely processed all records it got.
        offsets = await self.fetch_buffer.call(lambda: self._release(dict(self.states), gone))
        if self.config.enable_auto_commit:
            await self._commit_quietly(offsets)
        if listener is not None:
            await self.fetch_buffer.call(lambda: listener.on_partitions_revoked(gone))
        self._drop(gone)

    def _drop(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            state = self.states.pop(partition, None)
            if state is not None:
                state.lose_position()

    async def assign_more(self, partitions: Collection[TopicPartition]) -> None:
        """Add partitions, from the committed offsets of the group on."""
        listener = self._subscription.listener
        for partition in sorted(partitions):
            self.states[partition] = PartitionPosition(*partition)
        self.brokers.metadata.want({partition.topic for partition in partitions})
        if listener is not None:
            new = sorted(partitions)
            await self.fetch_buffer.call(lambda: listener.on_partitions_assigned(new))
        self.pump()

    def fail(self, error: BaseException) -> None:
        """The next poll raises this."""
        self.fetch_buffer.fail(error)

    def _check_topic_errors(self) -> None:
        """Report topics that are refused; log missing ones, which may be created later."""
        errors = self.brokers.metadata.errors
        for topic in (
            self._subscription.topics.union(partition.topic for partition in self.states) & errors.keys()
        ):
            if errors[topic] in REFUSED_TOPICS:
                self.fetch_buffer.fail_once(broker_error(errors[topic], f"topic {topic}"))
            elif errors[topic] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._schedule_refresh()
                self._missing[topic] += 1
                if self._missing[topic] == 2:  # at first it may be under creation
                    _log.warning("topic %s does not exist; it will be read when it does", topic)

    def _schedule_refresh(self) -> None:
        if self._looking is None:
            delay_s = self.config.retry_backoff_max_ms / 1000
            self._looking = asyncio.get_running_loop().call_later(delay_s, self._refresh_now)

    def _refresh_now(self) -> None:
        self._looking = None
        self.brokers.metadata.mark_stale()

    # Positions.

    def pump(self) -> None:
        """Fetch what can be fetched, and look up missing positions."""
        if self._finding is None and any(state.position is None for state in self.states.values()):
            self._finding = asyncio.create_task(self._find_positions())
        self._fetcher.pump()

    def _out_of_range(self, state: PartitionPosition) -> None:
        """The offset is out of range."""
        if self.config.auto_offset_reset == "none":
            self.fetch_buffer.fail(NoOffset([state.topic_partition]))
            state.not_before_ms = time.monotonic() * 1000 + self.config.retry_backoff_ms
            return
        _log.info("%s: offset %s is out of range", state.topic_partition, state.fetch_offset)
        state.lose_position()
        state.is_reset = True
        self.pump()

    def _truncated(self, state: PartitionPosition, end: LeaderEpochEnd) -> None:
        """The leader does not have all records that were returned."""
        partition, offset = state.topic_partition, state.position
        assert offset is not None
        divergent_offset = end.end_offset if end.is_known else None
        _log.warning("the log of %s was truncated before offset %s: %s", partition, offset, end)
        if self.config.auto_offset_reset == "none":
            self.fetch_buffer.fail_once(LogTruncated(partition, offset, divergent_offset))
            state.not_before_ms = time.monotonic() * 1000 + self.config.retry_backoff_ms
        elif divergent_offset is not None:
            state.seek(divergent_offset, end.leader_epoch)
        else:
            state.lose_position()
            state.is_reset = True
            self.pump()

    async def _find_positions(self) -> None:
        try:
            missing = {state for state in self.states.values() if state.position is None}
            await self._from_committed({state for state in missing if not state.is_reset})
            await self._from_ends({state for state in missing if state.position is None})
        except (BrokerError, ClientError) as error:
            if not is_retriable(error):
                self.fetch_buffer.fail(error)
            await asyncio.sleep(self.config.retry_backoff_ms / 1000)
        finally:
            self._finding = None
        self.pump()

    async def _from_committed(self, states: set[PartitionPosition]) -> None:
        if self._offsets is None or not states:
            return
        wanted = {state.topic_partition: (state, state.generation) for state in states}
        found = await self._offsets.fetch(wanted, self._fetching_identity)
        for partition, committed in found.items():
            state, generation = wanted[partition]
            if state.generation == generation and state.position is None:
                state.seek(committed.offset, committed.leader_epoch)

    def _fetching_identity(self) -> MemberIdentity:
        """The member that fetches offsets; required by the new protocol."""
        is_new = isinstance(self._member, HeartbeatMembership)
        return self._identity() if is_new else MemberIdentity()

    async def _from_ends(self, states: set[PartitionPosition]) -> None:
        if not states:
            return
        time_ms = time_to_begin(self.config.auto_offset_reset, time.time_ns() // 1_000_000)
        if time_ms is None:
            raise NoOffset(state.topic_partition for state in states)
        generations = {state.topic_partition: (state, state.generation) for state in states}
        reads_committed = self.config.reads_committed
        times = dict.fromkeys(generations, time_ms)
        found = await list_offsets(self.brokers, times, reads_committed=reads_committed)
        too_late = {partition: LATEST for partition, row in found.items() if row.offset < 0}
        if too_late:  # no record is so late: begin at the end
            found |= await list_offsets(self.brokers, too_late, reads_committed=reads_committed)
        for partition, row in found.items():
            state, generation = generations[partition]
            if state.generation == generation:
                state.is_reset = False
                state.seek(row.offset)

    def state(self, partition: TopicPartition) -> PartitionPosition:
        """The state of an assigned partition."""
        state = self.states.get(partition)
        if state is None:
            raise NotSubscribed(f"{partition} is not assigned to this consumer")
        return state

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Continue from an offset; with the epoch of the record before it, if the log still has that."""
        self.state(partition).seek(offset, leader_epoch)
        self.fetch_buffer.remove_errors_of(partition)
        self.pump()

    async def seek_to_end_of(self, partitions: Collection[TopicPartition], time_ms: int) -> None:
        """Continue from the beginning (EARLIEST) or the end (LATEST)."""
        for partition in partitions:
            self.state(partition)
        found = await list_offsets(
            self.brokers, dict.fromkeys(partitions, time_ms), reads_committed=self.config.reads_committed
        )
        for partition, row in found.items():
            self.seek(partition, row.offset)

    async def position(self, partition: TopicPartition, timeout_ms: int) -> int:
        """The position; waits until it is known."""
        state = self.state(partition)
        deadline_ms = time.monotonic() * 1000 + timeout_ms
        while state.position is None:
            self.pump()
            problem = self.fetch_buffer.problem()
            if problem is not None:
                raise problem
            if time.monotonic() * 1000 > deadline_ms:
                what = f"finding the position in {partition}"
                raise DeadlineExceeded(what, timeout_ms, self.brokers.last_failure)
            await asyncio.sleep(0.005)
        return state.position

    def pause(self, partitions: Iterable[TopicPartition], *, is_paused: bool) -> None:
        """Pause or resume partitions."""
        for partition in partitions:
            self.state(partition).is_paused = is_paused
        self.pump()

    # Offsets.

    @property
    def group(self) -> GroupOffsets:
        """The group's offsets, if there is a group."""
        if self._offsets is None:
            raise NotSubscribed("committed offsets need a group_id")
        return self._offsets

    async def commit(self, offsets: Offsets, timeout_ms: int | None = None) -> None:
        """Commit as a member of the group."""
        while True:
            who = self._identity()
            try:
                await self.group.commit(offsets, self._identity, timeout_ms)
            except BrokerError as error:
                if not await self._is_over(error, who, offsets):
                    raise
            else:
                break
        if offsets:
            self._on_committed(offsets)

    async def _is_over(self, error: BrokerError, who: MemberIdentity, offsets: Offsets) -> bool:
        """Whether the commit was refused only because of a rebalance that is over now.

        A cooperative member joins again in the background while the user still works on what it keeps.
        """
        if error.error_code not in BETWEEN_GENERATIONS or not isinstance(self._member, ClassicMembership):
            return False
        # A generation that waits for its assignments accepts no commits until it has them.
        is_expected = (
            error.error_code == ErrorCode.REBALANCE_IN_PROGRESS or not self._member.has_joined.is_set()
        )
        try:
            async with asyncio.timeout(self.config.default_api_timeout_ms / 1000):
                await self._member.has_joined.wait()
        except TimeoutError:
            return False
        is_ours = all(partition in self.states for partition in offsets)
        return is_ours and (is_expected or self._identity() != who)

    def _identity(self) -> MemberIdentity:
        return self._member.identity if self._member is not None else MemberIdentity()

    def group_metadata(self) -> ConsumerGroupMetadata:
        """The group, and this member as of now."""
        who = self._identity()
        return ConsumerGroupMetadata(
            self.group.group_id, who.generation_id, who.member_id, who.group_instance_id
        )

    def commit_soon(
        self, offsets: Offsets, on_commit: Callable[[BaseException | None, Offsets], Any] | None
    ) -> None:
        """Commit in the background; `on_commit(error, offsets)` is called during a later poll."""

        async def work() -> None:
            error: BaseException | None = None
            try:
                await self.commit(offsets)
            except (BrokerError, ClientError) as problem:
                error = problem
            if on_commit is not None:
                await self.fetch_buffer.call(lambda: on_commit(error, offsets))
            elif error is not None:
                _log.warning("committing offsets in the background: %s", error)

        task = asyncio.create_task(work())
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)

    async def _commit_quietly(self, offsets: Offsets) -> None:
        try:
            await self.commit(offsets, self.config.default_api_timeout_ms)
        except (BrokerError, ClientError) as error:
            _log.warning("committing offsets before partitions go: %s", error)

    async def committed(
        self, partitions: Collection[TopicPartition], timeout_ms: int | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The committed offsets of the group."""
        return await self.group.fetch(partitions, self._fetching_identity, timeout_ms=timeout_ms)

    async def list_offsets(
        self, times: Mapping[TopicPartition, int], timeout_ms: int | None
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Offsets by time, of any partitions."""
        self.brokers.metadata.want({partition.topic for partition in times})
        return await list_offsets(
            self.brokers, times, reads_committed=self.config.reads_committed, timeout_ms=timeout_ms
        )

    async def partitions_for(self, topic: str) -> int:
        """How many partitions a topic has."""
        metadata = self.brokers.metadata
        metadata.want([topic])

        async def attempt() -> int:
            if topic not in metadata.topics:
                metadata.mark_stale()
            await self.brokers.ensure_fresh()
            if topic not in metadata.topics:
                raise broker_error(
                    metadata.errors.get(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), f"topic {topic}"
                )
            return len(metadata.topics[topic].partitions)

        return await self.brokers.retry(f"finding topic {topic}", attempt)

    # Closing.

    async def _stop_member(self, reason: str) -> None:
        for task in (self._running, self._watching):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        self._running = self._watching = None
        if self._member is not None:
            await self._member.leave(reason)
            self._member = None

    async def close(self, offsets: Offsets, timeout_s: float) -> None:
        """Commit what was processed, leave the group, close all connections."""
        try:
            async with asyncio.timeout(timeout_s):
                if self.config.enable_auto_commit:
                    await self._commit_quietly(offsets)
                await self._stop_member("the consumer was closed")
        except TimeoutError:
            _log.warning("closing the consumer took longer than %s s", timeout_s)
        self._fetcher.stop()
        if self._looking is not None:
            self._looking.cancel()
        for task in (self._running, self._finding, self._watching, *self._commits):
            if task is not None:
                task.cancel()
        await self.brokers.close()
