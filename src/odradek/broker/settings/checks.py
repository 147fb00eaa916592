"""Settings that are fine alone and not together; the first contradiction found is raised."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from odradek.broker.settings.declarations.general import GeneralSettings
from odradek.broker.settings.declarations.groups import GroupSettings
from odradek.broker.settings.declarations.log import LogSettings
from odradek.broker.settings.declarations.network import NetworkSettings
from odradek.broker.settings.listeners import Contradiction

_HIGHEST_CODEC = 4


def check_identity(config: GeneralSettings, is_explicit: Callable[[str], bool]) -> None:
    """One number by two names, and one store by two names."""
    if config.node_id is not None and is_explicit("broker.id") and config.node_id != config.broker_id:
        raise Contradiction(
            f"node.id={config.node_id} and broker.id={config.broker_id} must be the same",
            "node.id",
            "broker.id",
        )
    number = config.broker_id if config.node_id is None else config.node_id
    is_missing = number == -1 and not _may_generate(config)
    if config.broker_id < -1 or (is_missing and is_explicit("broker.id")):
        raise Contradiction(f"broker.id={config.broker_id}: must be at least 0", "broker.id")
    if is_missing and _is_on_zookeeper(config):
        raise Contradiction(
            "broker.id is needed where broker.id.generation.enable=false", "broker.id.generation.enable"
        )
    if _may_generate(config) and number > config.reserved_broker_max_id:
        raise Contradiction(
            f"broker.id={number}: must not exceed reserved.broker.max.id={config.reserved_broker_max_id}, "
            "for numbers above it are generated",
            *("broker.id", "node.id", "reserved.broker.max.id"),
        )
    if config.odradek_coordination is not None and config.zookeeper_connect is not None:
        raise Contradiction(
            "odradek.coordination and zookeeper.connect both say where the shared state is: set one",
            *("odradek.coordination", "zookeeper.connect"),
        )


def _may_generate(config: GeneralSettings) -> bool:
    """Only ZooKeeper hands out numbers; on the embedded store a broker without one is 0."""
    return config.broker_id_generation_enable and _is_on_zookeeper(config)


def _is_on_zookeeper(config: GeneralSettings) -> bool:
    url = config.odradek_coordination or ""
    return config.zookeeper_connect is not None or url.startswith("zookeeper:")


def check_log(config: LogSettings) -> None:
    """Ages that come in two units are checked whatever the unit is."""
    if not (config.log_dir if config.log_dirs is None else config.log_dirs):
        key = "log.dir" if config.log_dirs is None else "log.dirs"
        raise Contradiction(f"{key} is empty: name a directory, or leave the setting out", key)
    if config.log_roll_ms is not None and config.log_roll_ms < 1:
        raise Contradiction("log.roll.ms must be greater than or equal to 1", "log.roll.ms")
    if config.log_roll_jitter_ms is not None and config.log_roll_jitter_ms < 0:
        raise Contradiction("log.roll.jitter.ms must be greater than or equal to 0", "log.roll.jitter.ms")
    for key in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        age = getattr(config, key.replace(".", "_"))
        if age is None:
            continue
        if age == 0:
            raise Contradiction(f"{key} must be unlimited (-1) or, greater than or equal to 1", key)
        break


def check_network(config: NetworkSettings, limits: Mapping[str, int]) -> None:
    """Limits that would refuse everything."""
    if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
        raise Contradiction(
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
            *("queued.max.request.bytes", "socket.request.max.bytes"),
        )
    if config.max_connections_per_ip == 0 and not limits:
        raise Contradiction(
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides is set",
            *("max.connections.per.ip", "max.connections.per.ip.overrides"),
        )


def parse_connection_limits(text: str) -> dict[str, int]:
    """`host:count,...` as a table; the last colon counts, for hosts may have some."""
    key = "max.connections.per.ip.overrides"
    limits = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = pair.rpartition(":")
        if not host.strip() or not count.strip().isdecimal():
            raise Contradiction(f"{key}={text}: {pair} is not host:count", key)
        limits[host.strip().strip("[]")] = int(count)
    return limits


def check_groups(config: GroupSettings) -> None:
    """Each limit has a least and a most, and the broker's own value lies between."""
    for name in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
        lowest, value, highest = (f"group.consumer.{part}{name}" for part in ("min.", "", "max."))
        _check_order(config, lowest, value)
        _check_order(config, value, highest)
    _check_order(config, "group.min.session.timeout.ms", "group.max.session.timeout.ms")
    if config.group_consumer_heartbeat_interval_ms >= config.group_consumer_session_timeout_ms:
        raise Contradiction(
            "group.consumer.heartbeat.interval.ms must be less than group.consumer.session.timeout.ms",
            *("group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"),
        )
    if "classic" not in config.group_coordinator_rebalance_protocols:
        key = "group.coordinator.rebalance.protocols"
        raise Contradiction(f"{key}: classic cannot be left out", key)
    if not 0 <= config.offsets_topic_compression_codec <= _HIGHEST_CODEC:
        key = "offsets.topic.compression.codec"
        raise Contradiction(f"{key}={config.offsets_topic_compression_codec}: there is no such codec", key)


def _check_order(config: GroupSettings, smaller: str, larger: str) -> None:
    low, high = (getattr(config, key.replace(".", "_")) for key in (smaller, larger))
    if low > high:
        raise Contradiction(f"{larger}={high} must be at least {smaller}={low}", smaller, larger)
