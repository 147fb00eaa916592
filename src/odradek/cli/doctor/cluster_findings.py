"""What is wrong with a cluster: decided from its state, without asking anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from odradek.cli.doctor.cluster_state import ClusterState, TopicState
from odradek.cli.doctor.finding import Finding, Severity
from odradek.client.admin.topics import PartitionDescription
from odradek.client.errors import BrokerError

_LOW_SPACE = 0.05


def diagnose(state: ClusterState) -> list[Finding]:
    """All findings, errors first."""
    found = [*_of_brokers(state), *_of_log_dirs(state), *_of_partitions(state), *_of_topics(state)]
    return sorted(found, key=lambda one: one.severity is not Severity.ERROR)


def _of_brokers(state: ClusterState) -> Iterator[Finding]:
    if state.cluster.controller_id is None:
        yield Finding(
            Severity.ERROR,
            "the cluster has no controller",
            "no broker could become it: leaders are not elected, topics are not made until one does",
            "look into the brokers' logs for their session at the store (odradek.coordination), and at the "
            "store itself",
        )
    holders: dict[int, int] = {}
    for topic in state.topics.values():
        for partition in topic.description.partitions:
            for broker in set(partition.replicas) - state.alive:
                holders[broker] = holders.get(broker, 0) + 1
    for broker, count in sorted(holders.items()):
        yield Finding(
            Severity.ERROR,
            f"broker {broker} is not registered",
            f"it has replicas of {count} partition{'' if count == 1 else 's'}, but no registration in the "
            "cluster: it is stopped, dead, or cut off from the store",
            f"start it with its own data; if it is gone for good, start an empty one with "
            f"broker.id={broker}, or move its replicas away by `odradek partitions reassign`",
        )
    for broker, reason in sorted(state.unreachable.items()):
        yield Finding(
            Severity.ERROR,
            f"broker {broker} is registered and does not answer",
            reason,
            "look whether its process hangs, and whether its advertised.listeners can be reached from here",
        )


def _of_log_dirs(state: ClusterState) -> Iterator[Finding]:
    for broker, directories in sorted(state.log_dirs.items()):
        for path, directory in sorted(directories.items()):
            if isinstance(directory, BrokerError):
                yield Finding(
                    Severity.ERROR,
                    f"log directory {path} of broker {broker} is offline",
                    str(directory),
                    "look at the disk and at the broker's log; the broker uses the directory again after a "
                    "restart",
                )
            elif directory.total_bytes and (directory.usable_bytes or 0) < _LOW_SPACE * directory.total_bytes:
                usable, total = (directory.usable_bytes or 0) >> 20, directory.total_bytes >> 20
                yield Finding(
                    Severity.WARNING,
                    f"the disk of log directory {path} of broker {broker} is nearly full",
                    f"{usable} of {total} MiB are usable; a full disk refuses writes",
                    "lower retention.bytes or retention.ms of large topics (`odradek cluster log-dirs`), or "
                    "move replicas away",
                )


class _Cause(NamedTuple):
    """Partitions with the same cause make one finding."""

    severity: Severity
    problem: str
    reason: str
    advice: str


def _of_partitions(state: ClusterState) -> Iterator[Finding]:
    names: dict[_Cause, list[str]] = {}
    for name, topic in sorted(state.topics.items()):
        for partition in topic.description.partitions:
            for cause in _causes(state, topic, partition):
                names.setdefault(cause, []).append(f"{name}-{partition.partition}")
    for cause, partitions in names.items():
        yield Finding(*cause, names=tuple(partitions))


def _causes(state: ClusterState, topic: TopicState, partition: PartitionDescription) -> Iterator[_Cause]:
    if partition.leader is None:
        yield _offline(state, partition)
    elif len(partition.isr) < topic.min_isr:
        yield _Cause(
            Severity.ERROR,
            "partitions under their min.insync.replicas refuse writes with acks=all",
            f"{len(partition.isr)} of {len(partition.replicas)} replicas are in sync, {topic.min_isr} are "
            f"needed; {_absences(state, partition)}",
            "bring those replicas back; lowering min.insync.replicas allows writes with fewer copies",
        )
    elif len(partition.isr) < len(partition.replicas) and not state.reassignments:
        yield _Cause(
            Severity.WARNING,
            "partitions are under-replicated",
            _absences(state, partition),
            "bring those replicas back, if they are not on their way; a live one that stays behind: look at "
            "its log, at odradek_replica_lag, and at throttles",
        )
    elif partition.leader != partition.replicas[0] and partition.replicas[0] in partition.isr:
        yield _Cause(
            Severity.WARNING,
            "partitions are not led by their preferred replica",
            f"broker {partition.leader} leads instead of broker {partition.replicas[0]}: the load is uneven",
            "wait for auto.leader.rebalance.enable, or run `odradek partitions elect-leaders "
            "--all-topic-partitions`",
        )


def _offline(state: ClusterState, partition: PartitionDescription) -> _Cause:
    """Why a partition has no leader."""
    problem = "partitions are offline: they can be neither read nor written"
    in_sync = partition.isr or partition.last_known_elr or ()
    live = [broker for broker in partition.replicas if _is_usable(state, partition, broker)]
    dead_in_sync = [broker for broker in in_sync if broker not in live]
    if any(broker in live for broker in in_sync):
        return _Cause(
            Severity.ERROR,
            problem,
            f"a replica in sync is alive ({_ids(one for one in in_sync if one in live)}), but no leader was "
            "elected",
            "look for a controller (`odradek cluster describe`), and into its log",
        )
    if not live:
        return _Cause(
            Severity.ERROR,
            problem,
            f"no replica is alive: {_absences(state, partition, includes_all=True)}",
            f"start a broker that was in sync: {_ids(dead_in_sync) or 'any'}",
        )
    return _Cause(
        Severity.ERROR,
        problem,
        f"no replica in sync is alive: {_absences(state, partition, includes_all=True)}; "
        f"{_brokers_are(live, 'alive')}, without the last records",
        f"start broker {_ids(dead_in_sync)} with its data; if they are lost, `odradek partitions "
        "elect-leaders --election-type unclean` makes a live replica the leader, and loses what only the "
        "others had",
    )


def _absences(state: ClusterState, partition: PartitionDescription, *, includes_all: bool = False) -> str:
    """Which replicas are out of sync, and what is known of each."""
    groups: dict[str, list[int]] = {}
    for broker in sorted(partition.replicas):
        if broker in partition.isr and not includes_all:
            continue
        if broker not in state.alive:
            word = "not registered"
        elif broker in state.unreachable:
            word = "not answering"
        elif broker in partition.offline_replicas:
            word = "with an offline log directory"
        elif includes_all:
            continue
        else:
            word = "alive and behind"
        groups.setdefault(word, []).append(broker)
    return ", ".join(_brokers_are(brokers, word) for word, brokers in groups.items())


def _is_usable(state: ClusterState, partition: PartitionDescription, broker: int) -> bool:
    return broker in state.alive and broker not in partition.offline_replicas


def _of_topics(state: ClusterState) -> Iterator[Finding]:
    rigid = _topics_where(state.topics, lambda topic, factor: factor > 1 and topic.min_isr == factor)
    if rigid:
        yield Finding(
            Severity.WARNING,
            "topics need all their replicas for writes with acks=all",
            "min.insync.replicas is as large as the replication factor: when one broker stops, writes stop",
            "lower min.insync.replicas to one less, or add a replica",
            rigid,
        )
    throttled = _topics_where(state.topics, lambda topic, _: topic.is_throttled)
    if throttled and not state.reassignments:
        yield Finding(
            Severity.WARNING,
            "topics are throttled, and no reassignment is under way",
            "a reassignment was started with a throttle, and was not verified at its end",
            "`odradek partitions reassign verify` with the plan removes the throttles",
            throttled,
        )


def _topics_where(
    topics: Mapping[str, TopicState], holds: Callable[[TopicState, int], bool]
) -> tuple[str, ...]:
    """The topics for which it holds, by the topic and its smallest number of replicas."""
    return tuple(
        name
        for name, topic in sorted(topics.items())
        if holds(topic, min((len(one.replicas) for one in topic.description.partitions), default=0))
    )


def _brokers_are(brokers: Sequence[int], word: str) -> str:
    return f"broker {_ids(brokers)} is {word}" if len(brokers) == 1 else f"brokers {_ids(brokers)} are {word}"


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(brokers)))
