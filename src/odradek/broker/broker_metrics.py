"""The metrics of a broker, read from its components when they are scraped."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.listeners import Listeners
from odradek.broker.requests.services import Services
from odradek.cluster.node import ClusterNode
from odradek.metrics import names
from odradek.metrics.registry import Registry, Sample
from odradek.replication.partition import Partition


def broker_registry(services: Services, listeners: Listeners, node: ClusterNode) -> Registry:
    """All metrics of a running broker; collected on its loop."""
    registry = Registry()
    registry.register(lambda: _requests(services, listeners))
    registry.register(lambda: _waiting(services))
    registry.register(lambda: _topics(services))
    registry.register(lambda: _logs(services))
    registry.register(lambda: _partitions(services))
    registry.register(lambda: _transactions(services))
    registry.register(lambda: _replication(services))
    registry.register(lambda: _controller(node))
    return registry


def _requests(services: Services, listeners: Listeners) -> Iterator[Sample]:
    for name, dispatcher in listeners.dispatchers.items():
        for api_key, counters in dispatcher.counters.items():
            if counters.requests:
                labels = (api_key.name, name)
                yield Sample(names.REQUESTS, labels, counters.requests)
                yield Sample(names.REQUEST_ERRORS, labels, counters.errors)
                yield Sample(names.REQUEST_BYTES, labels, counters.request_bytes)
                yield Sample(names.RESPONSE_BYTES, labels, counters.response_bytes)
                yield Sample(names.REQUEST_SECONDS, labels, counters.seconds)
    for name, listener in listeners:
        yield Sample(names.CONNECTIONS, (name,), listener.connection_count)
        yield Sample(names.CONNECTIONS_ACCEPTED, (name,), listener.accepted)
        yield Sample(names.CONNECTIONS_REFUSED, (name,), listener.refused)
    yield Sample(names.REQUESTS_UNDER_WAY, (), services.request_limit.open_requests)


def _waiting(services: Services) -> Iterator[Sample]:
    yield Sample(
        names.PURGATORY, ("produce",), len(services.waiting_produces) + len(services.waiting_flushes)
    )
    waiting_fetches = len(services.waiting_fetches) + len(services.waiting_followers)
    yield Sample(names.PURGATORY, ("fetch",), waiting_fetches)
    yield Sample(names.FETCH_SESSIONS, (), len(services.fetch_sessions))


def _topics(services: Services) -> Iterator[Sample]:
    for topic, traffic in services.replicas.traffic.items():
        yield Sample(names.BYTES_IN, (topic,), traffic.bytes_in)
        yield Sample(names.MESSAGES_IN, (topic,), traffic.messages_in)
        yield Sample(names.BYTES_OUT, (topic,), traffic.bytes_out)


def _logs(services: Services) -> Iterator[Sample]:
    logs = services.replicas.logs
    for (topic, index), log in logs.logs.items():
        labels = (topic, str(index))
        yield Sample(names.LOG_SIZE, labels, log.size_in_bytes)
        yield Sample(names.LOG_START_OFFSET, labels, log.log_start_offset)
        yield Sample(names.LOG_END_OFFSET, labels, log.log_end_offset)
        yield Sample(names.HIGH_WATERMARK, labels, log.high_watermark)
    failed = sum(directory.failure is not None for directory in logs.directories)
    yield Sample(names.OFFLINE_DIRECTORIES, (), failed)
    yield Sample(names.OPEN_FILES, (), len(logs.handles))


def _partitions(services: Services) -> Iterator[Sample]:
    led = [partition for partition in services.replicas if partition.is_leader]
    yield Sample(names.PARTITIONS, (), len(services.replicas))
    yield Sample(names.LEADERS, (), len(led))
    yield Sample(names.UNDER_REPLICATED, (), sum(map(_is_under_replicated, led)))
    missing = [_in_sync_beyond_minimum(partition) for partition in led]
    yield Sample(names.UNDER_MIN_ISR, (), sum(one < 0 for one in missing))
    yield Sample(names.AT_MIN_ISR, (), sum(one == 0 for one in missing))


def _transactions(services: Services) -> Iterator[Sample]:
    transactions = services.transactions
    started = [one.start_ms for one in transactions.open_transactions()]
    oldest_ms = services.clock.now_ms() - min(started) if started else 0
    yield Sample(names.TRANSACTIONS_OPEN, (), len(started))
    yield Sample(names.OLDEST_TRANSACTION, (), max(oldest_ms, 0) / 1000)
    yield Sample(names.TRANSACTIONS_ENDED, ("commit",), transactions.counters.committed)
    yield Sample(names.TRANSACTIONS_ENDED, ("abort",), transactions.counters.aborted)
    yield Sample(names.MARKERS_WAITING, (), len(transactions.markers))


def _is_under_replicated(partition: Partition) -> bool:
    return len(partition.state.isr) < len(partition.state.replicas)


def _in_sync_beyond_minimum(partition: Partition) -> int:
    # A topic with fewer replicas than its min ISR would never accept anything.
    minimum = min(partition.log.config.min_insync_replicas, len(partition.state.replicas))
    return len(partition.isr) - minimum


def _replication(services: Services) -> Iterator[Sample]:
    replicas = services.replicas
    counters = replicas.counters
    yield Sample(names.ISR_SHRINKS, (), counters.isr_shrinks)
    yield Sample(names.ISR_EXPANDS, (), counters.isr_expands)
    yield Sample(names.FAILED_ISR_UPDATES, (), counters.failed_isr_updates)
    yield Sample(names.REPLICATION_BYTES_IN, (), counters.fetched_bytes)
    yield Sample(names.FAILED_FETCHES, (), counters.failed_fetches)
    yield Sample(names.CORRUPT_BATCHES, (), counters.corrupt_batches)
    yield Sample(names.TRUNCATIONS, (), counters.truncations)
    if replicas.fetchers is not None:
        yield Sample(names.MAX_FOLLOWER_LAG, (), replicas.fetchers.max_lag())
    for partition in replicas:
        (topic, index), end_offset = partition.topic_partition, partition.log.log_end_offset
        for broker_id, follower in partition.followers.items():
            # Before its first fetch in this leader epoch nothing is known.
            behind = end_offset - max(follower.end_offset, partition.log.log_start_offset)
            yield Sample(names.REPLICA_LAG, (topic, str(index), str(broker_id)), max(0, behind))


def _controller(node: ClusterNode) -> Iterator[Sample]:
    yield Sample(names.LEADER_ELECTIONS, (), node.elections.elections)
    yield Sample(names.UNCLEAN_ELECTIONS, (), node.elections.unclean)
    context = node.controller_context
    yield Sample(names.ACTIVE_CONTROLLER, (), context is not None)
    yield Sample(names.OFFLINE_PARTITIONS, (), 0 if context is None else context.offline_partitions())
