"""The whole configuration of a broker as typed fields, checked as a whole."""

from __future__ import annotations

import dataclasses
import os.path
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from odradek.broker.settings import catalog, checks, listeners
from odradek.broker.settings.declarations.general import GeneralSettings
from odradek.broker.settings.declarations.groups import GroupConfig, GroupSettings
from odradek.broker.settings.declarations.log import LogSettings
from odradek.broker.settings.declarations.network import NetworkSettings
from odradek.broker.settings.declarations.replication import ReplicationSettings
from odradek.broker.settings.declarations.security import SecuritySettings
from odradek.broker.settings.declarations.transactions import TransactionSettings
from odradek.broker.settings.group import group_config
from odradek.broker.settings.listeners import Contradiction, Endpoint
from odradek.broker.settings.sources import Sources, effective
from odradek.broker.settings.topic import topic_config
from odradek.common.config import LONG_MAX, Value, settings_of
from odradek.log.cleaner.config import CleanerConfig
from odradek.log.config import LogConfig
from odradek.log.directories.manager_config import LogManagerConfig

STORE_FILE = "coordination.db"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class BrokerConfig(
    GeneralSettings,
    NetworkSettings,
    LogSettings,
    ReplicationSettings,
    GroupSettings,
    TransactionSettings,
    SecuritySettings,
):
    """One key is one field, dots as underscores; settings of other packages are in objects of theirs.

    Created by `broker_config`, again for every dynamic change; immutable.
    """

    log_manager: LogManagerConfig = field(default=LogManagerConfig())
    cleaner: CleanerConfig = field(default=CleanerConfig())
    sources: Sources = field(default=Sources())

    def __init__(self, **values: Any) -> None:
        """Fields by name; the class has the defaults of all others.

        Not left to `dataclass`, which takes 5 ms for so many fields.
        """
        unknown = values.keys() - self.__dataclass_fields__.keys()
        if unknown:
            raise TypeError(f"a broker has no settings {', '.join(sorted(unknown))}")
        self.__dict__.update(values)

    def is_explicit(self, key: str) -> bool:
        """Whether it was set; internal topics adapt to the cluster where it was not."""
        return key in self.sources.texts()

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """Every setting by key."""
        return MappingProxyType(effective(self.sources))

    @cached_property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Where to listen: `listeners` without those that Kafka has for its KRaft controllers."""
        return self._parse_endpoints("listeners", self.listeners)

    @cached_property
    def advertised_endpoints(self) -> tuple[Endpoint, ...]:
        """The addresses in the metadata, for clients and other brokers."""
        if self.advertised_listeners is None:
            return self.endpoints
        return self._parse_endpoints("advertised.listeners", self.advertised_listeners)

    def _parse_endpoints(self, key: str, texts: tuple[str, ...]) -> tuple[Endpoint, ...]:
        endpoints = listeners.parse_endpoints(key, texts, self._protocols)
        names = [name.upper() for name in self.controller_listener_names or ()]
        kept = tuple(endpoint for endpoint in endpoints if endpoint.listener not in names)
        if not kept:
            message = f"{key} must name a listener that is not one of controller.listener.names"
            raise Contradiction(message, key, "controller.listener.names")
        return kept

    @property
    def metrics_endpoint(self) -> Endpoint | None:
        """Where metrics are served; None for nowhere."""
        if self.odradek_metrics_listener is None:
            return None
        host, _, port = self.odradek_metrics_listener.rpartition(":")
        return Endpoint("METRICS", listeners.SecurityProtocol.PLAINTEXT, host.strip("[]"), int(port))

    @property
    def inter_broker_listener(self) -> str:
        """The listener on which brokers talk to each other; security.inter.broker.protocol names it, too."""
        return (self.inter_broker_listener_name or self.security_inter_broker_protocol).upper()

    @property
    def control_listener(self) -> str:
        """The listener on which brokers serve the controller."""
        return (self.control_plane_listener_name or self.inter_broker_listener).upper()

    def is_for_brokers(self, listener: str) -> bool:
        """Whether other brokers and the controller use a listener; clients may, too."""
        return listener in (self.inter_broker_listener, self.control_listener)

    @property
    def data_dirs(self) -> tuple[str, ...]:
        """The log directories."""
        return self.log_dir if self.log_dirs is None else self.log_dirs

    @property
    def replica_alter_log_dirs_io_max_bytes_per_second(self) -> int:
        """How fast replicas may move between directories; only ever set at run time."""
        key = "replica.alter.log.dirs.io.max.bytes.per.second"
        text = self.sources.texts().get(key)
        return LONG_MAX if text is None else int(text)

    @property
    def follower_replication_throttled_rate(self) -> int:
        """How fast throttled followers may fetch; only ever set at run time."""
        text = self.sources.texts().get("follower.replication.throttled.rate")
        return LONG_MAX if text is None else int(text)

    @property
    def leader_replication_throttled_rate(self) -> int:
        """How fast throttled leaders may send to replicas out of sync; only ever set at run time."""
        text = self.sources.texts().get("leader.replication.throttled.rate")
        return LONG_MAX if text is None else int(text)

    @property
    def coordination_url(self) -> str:
        """Where the shared store is."""
        if self.odradek_coordination is not None:
            return self.odradek_coordination
        if self.zookeeper_connect is not None:
            return f"zookeeper://{self.zookeeper_connect}"
        return f"sqlite:{os.path.join(self.data_dirs[0], STORE_FILE)}"

    @property
    def given_broker_id(self) -> int | None:
        """This broker's id; None where the store generates it, once for a set of log directories."""
        number = self.broker_id if self.node_id is None else self.node_id
        if number >= 0:
            return number
        return 0 if self.coordination_url.startswith("sqlite:") else None

    def topic(self, overrides: Mapping[str, str]) -> LogConfig:
        """The settings of a topic; ConfigError for one that it cannot have."""
        return topic_config(self.values, overrides)

    def group(self, overrides: Mapping[str, str]) -> GroupConfig:
        """What counts for a group that sets these itself."""
        return group_config(self.values, overrides)

    @cached_property
    def connection_limits(self) -> Mapping[str, int]:
        """The addresses with a limit of their own."""
        return checks.parse_connection_limits(self.max_connections_per_ip_overrides)

    def for_listener(self, listener: str) -> BrokerConfig:
        """The same, with what was set for one listener in place of what was set for all."""
        own: dict[str, str] = {}
        for name, text in self.sources.texts().items():
            split = catalog.split_listener(name)
            if split is not None and split[0] == listener.upper() and split[1] in catalog.BROKER:
                own[split[1]] = text
        fields: dict[str, Any] = {
            key.replace(".", "_"): catalog.BROKER[key].parse(text) for key, text in own.items()
        }
        return dataclasses.replace(self, **fields) if fields else self

    @cached_property
    def _protocols(self) -> dict[str, listeners.SecurityProtocol]:
        return listeners.parse_protocol_map(self.listener_security_protocol_map)


def broker_config(sources: Sources) -> BrokerConfig:
    """The configuration that all sources together make; ConfigError where it cannot be."""
    values = effective(sources)
    config = BrokerConfig(
        **_fields(BrokerConfig, values),
        log_manager=LogManagerConfig(**_fields(LogManagerConfig, values)),
        cleaner=CleanerConfig(**_fields(CleanerConfig, values)),
        sources=sources,
    )
    _check_listeners(config)
    checks.check_identity(config, config.is_explicit)
    checks.check_log(config)
    checks.check_network(config, config.connection_limits)
    checks.check_groups(config)
    config.topic({})
    return config


def _fields(group: type[Any], values: Mapping[str, Value]) -> dict[str, Any]:
    return {key.replace(".", "_"): values[key] for key in settings_of(group)}


def _check_listeners(config: BrokerConfig) -> None:
    listeners.check_ports(config.endpoints)
    listeners.check_advertised(config.advertised_endpoints, config.endpoints)
    is_allowed = config.odradek_allow_unauthenticated
    for endpoint in config.endpoints:
        listeners.check_protocol(endpoint)
        listeners.check_reach(endpoint, is_allowed=is_allowed)
    if config.metrics_endpoint is not None:
        listeners.check_reach(config.metrics_endpoint, is_allowed=is_allowed)
    advertised = [endpoint.listener for endpoint in config.advertised_endpoints]
    if config.inter_broker_listener not in advertised:
        raise Contradiction(
            f"inter.broker.listener.name={config.inter_broker_listener}: brokers could not reach it, "
            f"for only {', '.join(advertised)} is advertised",
            "inter.broker.listener.name",
            "security.inter.broker.protocol",
            "listeners",
        )
    control_plane = config.control_plane_listener_name
    if control_plane is not None and control_plane.upper() not in advertised:
        raise Contradiction(
            f"control.plane.listener.name={control_plane}: the controller could not reach it, "
            f"for only {', '.join(advertised)} is advertised",
            "control.plane.listener.name",
            "listeners",
        )
    if control_plane is not None and control_plane.upper() == config.inter_broker_listener:
        raise Contradiction(
            f"control.plane.listener.name={control_plane}: that is the listener between brokers; "
            "name another one, or none",
            "control.plane.listener.name",
            "inter.broker.listener.name",
        )
