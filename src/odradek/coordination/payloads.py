"""What Kafka's znodes hold: JSON to values and back, byte for byte as ZooKeeper-mode Kafka 3.9 writes it.

Each class has `encode` and `decode`; `decode` raises `DamagedPayload` and accepts older versions of the
format. Fields are in the order in which Kafka's hash maps emit them (tests/data/znodes).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self
from uuid import UUID

from odradek.common.acls import (
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from odradek.common.ids import TopicPartition, uuid_from_text, uuid_to_text
from odradek.coordination.errors import DamagedPayload
from odradek.coordination.json_fields import Fields, decode, encode
from odradek.coordination.paths import ConfigEntity, parse_entity_path

NO_LEADER = -1
NO_JMX_PORT = -1

_ENDPOINT = re.compile(r"(?P<listener>[^:/]+)://(?P<host>\[[^\]]*\]|[^\[\]:]*):(?P<port>-?[0-9]{1,5})\Z")


class Listener(NamedTuple):
    """Where clients reach a broker on one of its listeners; the host is empty where none was advertised."""

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


class BrokerRegistration(NamedTuple):
    """/brokers/ids/<id>, an ephemeral node: who this broker is and where it listens."""

    listeners: tuple[Listener, ...]
    timestamp_ms: int
    rack: str | None = None
    jmx_port: int = NO_JMX_PORT
    features: Mapping[str, tuple[int, int]] = MappingProxyType({})

    def encode(self) -> bytes:
        """Version 5. `host` and `port` are for clients that know no listeners: the first plain one."""
        plain = next((one for one in self.listeners if one.security_protocol == "PLAINTEXT"), None)
        features = {
            name: {"min_version": low, "max_version": high} for name, (low, high) in self.features.items()
        }
        return encode(
            {
                "features": features,
                "listener_security_protocol_map": {one.name: one.security_protocol for one in self.listeners},
                "endpoints": [str(one) for one in self.listeners],
                **({} if self.rack is None else {"rack": self.rack}),
                "jmx_port": self.jmx_port,
                "port": -1 if plain is None else plain.port,
                "host": None if plain is None else plain.host,
                "version": 5,
                "timestamp": str(self.timestamp_ms),
            }
        )

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Version 1 has host and port only; 2 endpoints, 3 a rack, 4 names for listeners, 5 features."""
        fields = decode("broker registration", payload)
        return cls(
            listeners=_read_listeners(fields),
            timestamp_ms=fields.integer("timestamp", -1),
            rack=fields.text("rack") if "rack" in fields else None,
            jmx_port=fields.integer("jmx_port", NO_JMX_PORT),
            features=_read_features(fields.nested_or_empty("features")),
        )


def _read_listeners(fields: Fields) -> tuple[Listener, ...]:
    if "endpoints" not in fields:
        return (Listener("PLAINTEXT", fields.text("host"), fields.integer("port")),)
    protocols = fields.nested_or_empty("listener_security_protocol_map").texts_by_name()
    return tuple(_read_listener(fields, text, protocols) for text in fields.texts("endpoints"))


def _read_listener(fields: Fields, endpoint: str, protocols: Mapping[str, str]) -> Listener:
    match = _ENDPOINT.match(endpoint)
    if match is None:
        raise DamagedPayload(fields.kind, f"{endpoint!r} is not an endpoint")
    name = match["listener"]
    return Listener(name, match["host"].strip("[]"), int(match["port"]), protocols.get(name, name))


def _read_features(fields: Fields) -> dict[str, tuple[int, int]]:
    ranges = ((name, fields.nested(name)) for name in fields)
    return {name: (levels.integer("min_version"), levels.integer("max_version")) for name, levels in ranges}


class ControllerRegistration(NamedTuple):
    """/controller, an ephemeral node: which broker is the controller.

    `kraft_controller_epoch` exists since Kafka 3.4 for the migration to KRaft, -1 before; it is not used
    here and left out.
    """

    broker_id: int
    timestamp_ms: int
    kraft_controller_epoch: int | None = None

    def encode(self) -> bytes:
        """Version 1, or 2 with the epoch."""
        fields = {"version": 1, "brokerid": self.broker_id, "timestamp": str(self.timestamp_ms)}
        if self.kraft_controller_epoch is not None:
            fields |= {"version": 2, "kraftControllerEpoch": self.kraft_controller_epoch}
        return encode(fields)

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Both versions."""
        fields = decode("controller", payload)
        has_epoch = "kraftControllerEpoch" in fields
        return cls(
            broker_id=fields.integer("brokerid"),
            timestamp_ms=fields.integer("timestamp", -1),
            kraft_controller_epoch=fields.integer("kraftControllerEpoch") if has_epoch else None,
        )


def encode_controller_epoch(epoch: int) -> bytes:
    """/controller_epoch: a bare number; the node's version fences the controller's writes."""
    return str(epoch).encode()


def decode_controller_epoch(payload: bytes) -> int:
    """The inverse."""
    if not payload.isdigit() or len(payload) > 10:
        raise DamagedPayload("controller epoch", f"{payload!r:.100} is not a number")
    return int(payload)


def encode_cluster_id(cluster_id: str) -> bytes:
    """/cluster/id."""
    return encode({"version": "1", "id": cluster_id})


def decode_cluster_id(payload: bytes) -> str:
    """The inverse."""
    return decode("cluster id", payload).text("id")


class Replicas(NamedTuple):
    """The brokers of one partition, the preferred leader first; and what a reassignment adds and removes."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


class TopicAssignment(NamedTuple):
    """/brokers/topics/<topic>: the topic's id, and the brokers of each partition."""

    partitions: Mapping[int, Replicas]
    topic_id: UUID | None = None

    def encode(self) -> bytes:
        """Version 3."""
        parts = self.partitions.items()
        return encode(
            {
                "partitions": {str(number): list(one.replicas) for number, one in parts},
                **({} if self.topic_id is None else {"topic_id": uuid_to_text(self.topic_id)}),
                "adding_replicas": {str(number): list(one.adding) for number, one in parts if one.adding},
                "removing_replicas": {
                    str(number): list(one.removing) for number, one in parts if one.removing
                },
                "version": 3,
            }
        )

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Version 1 has partitions only; 2 adding and removing replicas; 3 the id."""
        fields = decode("topic", payload)
        replicas = fields.nested("partitions").replicas_by_partition()
        adding = fields.nested_or_empty("adding_replicas").replicas_by_partition()
        removing = fields.nested_or_empty("removing_replicas").replicas_by_partition()
        topic_id = None
        if "topic_id" in fields:
            topic_id = fields.check(lambda: uuid_from_text(fields.text("topic_id")))
        partitions = {
            number: Replicas(ids, adding.get(number, ()), removing.get(number, ()))
            for number, ids in replicas.items()
        }
        return cls(partitions, topic_id)


class PartitionStateNode(NamedTuple):
    """/brokers/topics/<t>/partitions/<n>/state: leader and ISR; the node's version is the partition epoch.

    `is_recovering`: the leader was elected uncleanly and has not yet caught up with that (KIP-704).
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    is_recovering: bool = False

    def encode(self) -> bytes:
        """Version 1."""
        return encode(
            {
                "controller_epoch": self.controller_epoch,
                "leader": self.leader,
                "version": 1,
                **({"leader_recovery_state": 1} if self.is_recovering else {}),
                "leader_epoch": self.leader_epoch,
                "isr": list(self.isr),
            }
        )

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """The inverse."""
        fields = decode("partition state", payload)
        return cls(
            leader=fields.integer("leader"),
            leader_epoch=fields.integer("leader_epoch"),
            isr=fields.integers("isr"),
            controller_epoch=fields.integer("controller_epoch"),
            is_recovering=fields.integer("leader_recovery_state", 0) == 1,
        )


def encode_config(config: Mapping[str, str]) -> bytes:
    """/config/<type>/<name>: settings as texts."""
    return encode({"version": 1, "config": dict(config)})


def decode_config(payload: bytes) -> dict[str, str]:
    """The inverse; an empty node has no settings."""
    return decode("configuration", payload).nested("config").texts_by_name() if payload else {}


def encode_config_change(entity: ConfigEntity) -> bytes:
    """/config/changes/config_change_<n>: whose settings were changed."""
    return encode({"version": 2, "entity_path": entity.entity_path})


def decode_config_change(payload: bytes) -> ConfigEntity:
    """Version 1 has type and name of the entity, 2 its path."""
    fields = decode("configuration change", payload)
    if "entity_path" in fields:
        return parse_entity_path(fields.text("entity_path"))
    return parse_entity_path(f"{fields.text('entity_type')}/{fields.text('entity_name')}")


def encode_reassignment(replicas: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
    """/admin/reassign_partitions: where partitions are to go."""
    partitions = [_partition(one) | {"replicas": list(ids)} for one, ids in replicas.items()]
    return encode({"version": 1, "partitions": partitions})


def decode_reassignment(payload: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """The inverse."""
    rows = decode("reassignment", payload).objects("partitions")
    return {_read_partition(row): row.integers("replicas") for row in rows}


def encode_partitions(partitions: tuple[TopicPartition, ...]) -> bytes:
    """/admin/preferred_replica_election and /isr_change_notification/isr_change_<n>: which partitions."""
    return encode({"version": 1, "partitions": [_partition(one) for one in partitions]})


def decode_partitions(payload: bytes) -> tuple[TopicPartition, ...]:
    """The inverse."""
    return tuple(map(_read_partition, decode("list of partitions", payload).objects("partitions")))


def _partition(partition: TopicPartition) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.partition}


def _read_partition(row: Fields) -> TopicPartition:
    return TopicPartition(row.text("topic"), row.integer("partition"))


def encode_log_dir_event(broker_id: int) -> bytes:
    """/log_dir_event_notification/log_dir_event_<n>: the one event there is, a failed directory."""
    return encode({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(payload: bytes) -> int:
    """The broker whose log directory failed."""
    return decode("log directory event", payload).integer("broker")


class ProducerIdBlock(NamedTuple):
    """/latest_producer_id_block: the last ids that a broker took, both ends included."""

    broker_id: int
    first: int
    last: int

    def encode(self) -> bytes:
        """Version 1."""
        ends = {"block_start": str(self.first), "block_end": str(self.last)}
        return encode({"version": 1, "broker": self.broker_id, **ends})

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """The inverse."""
        fields = decode("producer id block", payload)
        return cls(fields.integer("broker"), fields.integer("block_start"), fields.integer("block_end"))


class FinalizedFeatures(NamedTuple):
    """/feature: the level at which each feature is switched on; the node's version is the epoch."""

    levels: Mapping[str, int] = MappingProxyType({})
    is_enabled: bool = True

    def encode(self) -> bytes:
        """Version 2."""
        return encode({"features": dict(self.levels), "version": 2, "status": int(self.is_enabled)})

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Version 1 wrote a range of levels for each feature; its upper end is the level."""
        fields = decode("finalized features", payload)
        features = fields.nested("features")
        if fields.integer("version") == 1:
            levels = {name: features.nested(name).integer("max_version_level") for name in features}
        else:
            levels = features.integers_by_name()
        return cls(levels, fields.integer("status") == 1)


Entries = tuple[AccessControlEntry, ...]

_OPERATIONS = {one.title: one for one in AclOperation}
_PERMISSION_TYPES = {one.title: one for one in AclPermissionType}
_RESOURCE_TYPES = {one.name: one for one in ResourceType} | {one.title: one for one in ResourceType}
_PATTERN_TYPES = {one.name: one for one in PatternType}


def encode_acls(entries: Entries) -> bytes:
    """/kafka-acl/<type>/<name> and /kafka-acl-extended/prefixed/<type>/<name>: the ACLs of one pattern."""
    rows = [
        {
            "principal": entry.principal,
            "permissionType": entry.permission_type.title,
            "host": entry.host,
            "operation": entry.operation.title,
        }
        for entry in entries
    ]
    return encode({"acls": rows, "version": 1})


def decode_acls(payload: bytes) -> Entries:
    """The inverse, each entry once; an empty node has none.

    An operation or permission that a newer Kafka wrote is UNKNOWN, and applies to nothing.
    """
    if not payload:
        return ()
    rows = decode("list of ACLs", payload).objects("acls")
    return tuple(dict.fromkeys(map(_read_acl, rows)))


def _read_acl(row: Fields) -> AccessControlEntry:
    return AccessControlEntry(
        principal=row.text("principal"),
        host=row.text("host"),
        operation=_OPERATIONS.get(row.text("operation"), AclOperation.UNKNOWN),
        permission_type=_PERMISSION_TYPES.get(row.text("permissionType"), AclPermissionType.UNKNOWN),
    )


def encode_acl_change(pattern: ResourcePattern) -> bytes:
    """/kafka-acl-changes/acl_changes_<n>, /kafka-acl-extended-changes/acl_changes_<n>: whose ACLs changed."""
    if pattern.pattern_type is PatternType.LITERAL:
        return f"{pattern.resource_type.name}:{pattern.name}".encode()
    return encode(
        {
            "version": 1,
            "resourceType": pattern.resource_type.name,
            "name": pattern.name,
            "patternType": pattern.pattern_type.name,
        }
    )


def decode_acl_change(payload: bytes) -> ResourcePattern:
    """The inverse; Kafka before 2.5 wrote `Topic` for TOPIC."""
    if payload.startswith(b"{"):
        fields = decode("change of ACLs", payload)
        words = fields.text("resourceType"), fields.text("name"), fields.text("patternType")
    else:
        resource_type, _, name = payload.decode(errors="replace").partition(":")
        words = resource_type, name, PatternType.LITERAL.name
    pattern = ResourcePattern(
        _RESOURCE_TYPES.get(words[0], ResourceType.UNKNOWN),
        words[1],
        _PATTERN_TYPES.get(words[2], PatternType.UNKNOWN),
    )
    if pattern.resource_type <= ResourceType.ANY or pattern.pattern_type < PatternType.LITERAL:
        raise DamagedPayload("change of ACLs", f"{payload!r:.100} names no resource")
    return pattern
