"""Who this broker is, where the cluster's shared state is, and what it does on its own account."""

from __future__ import annotations

import re

from odradek.broker.settings.declarations.declare import (
    BOOLEAN,
    HIGH,
    INT,
    STRING,
    cluster_wide,
    read_only,
    theme,
)
from odradek.broker.settings.listeners import HIGHEST_PORT
from odradek.common.config import Valid, at_least


def _is_host_port(text: str) -> bool:
    found = re.fullmatch(r"(?:\[[0-9a-fA-F:.%]+\]|[0-9A-Za-z._-]+):([0-9]{1,5})", text)
    return found is not None and int(found[1]) <= HIGHEST_PORT


# Whether the rest of it makes sense is found out where the store is opened.
STORE_URL = Valid(
    lambda url: bool(re.fullmatch("sqlite:.+|zookeeper://.+", url)),
    "sqlite:PATH or zookeeper://host:port,host:port/chroot",
)
HOST_PORT = Valid(
    _is_host_port,
    f"host:port, such as 127.0.0.1:9308, with a port of at most {HIGHEST_PORT}",
)


@theme
class GeneralSettings:
    """Identity, shared state, topics made without being asked for, limits of a request."""

    broker_id: int = read_only(
        "broker.id",
        INT,
        -1,
        "This broker's number; -1 is 0 on the embedded store and a generated number on ZooKeeper.",
        importance=HIGH,
    )
    node_id: int | None = read_only(
        "node.id",
        INT,
        None,
        "Another name of broker.id, as Kafka 4 has it; where both are given they must agree.",
        at_least(0),
        importance=HIGH,
    )
    broker_id_generation_enable: bool = read_only(
        "broker.id.generation.enable",
        BOOLEAN,
        True,
        "Whether a broker without broker.id gets the next free id above reserved.broker.max.id.",
    )
    reserved_broker_max_id: int = read_only(
        "reserved.broker.max.id",
        INT,
        1000,
        "The highest broker.id that may be configured; generated ids are above it.",
        at_least(0),
    )
    broker_rack: str | None = read_only(
        "broker.rack",
        STRING,
        None,
        "The rack of this broker; replicas are spread over racks, and consumers may read from their own.",
    )
    odradek_coordination: str | None = read_only(
        "odradek.coordination",
        STRING,
        None,
        "Where the cluster's shared state is; else zookeeper.connect, or a file in the first log directory.",
        STORE_URL,
        importance=HIGH,
    )
    odradek_allow_unauthenticated: bool = read_only(
        "odradek.allow.unauthenticated",
        BOOLEAN,
        False,
        "Whether a listener without authentication may be reached from other machines.",
        importance=HIGH,
    )
    odradek_metrics_listener: str | None = read_only(
        "odradek.metrics.listener",
        STRING,
        None,
        "Where Prometheus reads this broker's numbers by HTTP: host:port, where port 0 picks one; else off.",
        HOST_PORT,
    )
    zookeeper_connect: str | None = read_only(
        "zookeeper.connect",
        STRING,
        None,
        "The ZooKeeper ensemble as host:port,host:port/chroot; odradek.coordination says the same as a URL.",
        importance=HIGH,
    )
    zookeeper_connection_timeout_ms: int | None = read_only(
        "zookeeper.connection.timeout.ms",
        INT,
        None,
        "How long a start waits for ZooKeeper; without a value as long as zookeeper.session.timeout.ms.",
        importance=HIGH,
    )
    zookeeper_session_timeout_ms: int = read_only(
        "zookeeper.session.timeout.ms",
        INT,
        18_000,
        "How long a broker may be silent before its session expires.",
        importance=HIGH,
    )
    auto_create_topics_enable: bool = read_only(
        "auto.create.topics.enable",
        BOOLEAN,
        True,
        "Whether asking for the metadata of an unknown topic creates it, if the client allows that.",
        importance=HIGH,
    )
    delete_topic_enable: bool = read_only(
        "delete.topic.enable", BOOLEAN, True, "Whether topics can be deleted at all.", importance=HIGH
    )
    num_partitions: int = read_only(
        "num.partitions", INT, 1, "Partitions of a topic whose creator names no number.", at_least(1)
    )
    default_replication_factor: int = read_only(
        "default.replication.factor", INT, 1, "Replicas of a topic whose creator names no number."
    )
    num_io_threads: int = cluster_wide(
        "num.io.threads",
        INT,
        8,
        "Threads for what may block: fsync, reads from disk, directory work, recovery, compression; control "
        "requests and replication have as many of their own.",
        at_least(1),
        importance=HIGH,
    )
    fetch_max_bytes: int = read_only(
        "fetch.max.bytes",
        INT,
        57_671_680,
        "The most that one fetch may return, whatever the client asks for; a first batch may be larger.",
        at_least(1024),
    )
    max_incremental_fetch_session_cache_slots: int = read_only(
        "max.incremental.fetch.session.cache.slots",
        INT,
        1000,
        "Fetch sessions that are kept, so that clients need not repeat their partitions.",
        at_least(0),
    )
    max_request_partition_size_limit: int = read_only(
        "max.request.partition.size.limit",
        INT,
        2000,
        "The most partitions in one response of DescribeTopicPartitions.",
        at_least(1),
    )
