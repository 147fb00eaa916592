"""Kafka's znode paths: where each thing is stored, and how to parse a path.

    /controller, /controller_epoch, /cluster/id, /feature, /latest_producer_id_block
    /brokers/ids/<id>, /brokers/seqid
    /brokers/topics/<topic>/partitions/<n>/state
    /admin/delete_topics/<topic>, /admin/reassign_partitions, /admin/preferred_replica_election
    /isr_change_notification/isr_change_<n>, /log_dir_event_notification/log_dir_event_<n>
    /config/<type>/<name>, /config/users/<user>/clients/<client>, /config/changes/config_change_<n>
    /kafka-acl/<type>/<name>, /kafka-acl-changes/acl_changes_<n>
    /kafka-acl-extended/prefixed/<type>/<name>, /kafka-acl-extended-changes/acl_changes_<n>

What the nodes hold is in payloads.py.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple
from urllib.parse import quote, unquote

from odradek.common.acls import RESOURCE_TYPES, PatternType, ResourcePattern, ResourceType
from odradek.common.ids import TopicPartition
from odradek.coordination.errors import DamagedPayload

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER_ID = "/cluster/id"
FEATURE = "/feature"
LATEST_PRODUCER_ID_BLOCK = "/latest_producer_id_block"

BROKER_IDS = "/brokers/ids"
BROKER_SEQUENCE_ID = "/brokers/seqid"
TOPICS = "/brokers/topics"

DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"

ISR_CHANGE_NOTIFICATION = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION = "/log_dir_event_notification"
CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"

ACL_CHANGES = "/kafka-acl-changes"
EXTENDED_ACL_CHANGES = "/kafka-acl-extended-changes"

# To be created as sequential nodes.
ISR_CHANGE_PREFIX = f"{ISR_CHANGE_NOTIFICATION}/isr_change_"
LOG_DIR_EVENT_PREFIX = f"{LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_"
CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES}/config_change_"
ACL_CHANGE_PREFIX = "acl_changes_"

# Created by a broker when it starts, in Kafka's order; Kafka's own tools expect them.
PERSISTENT_PATHS = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQUENCE_ID,
    ISR_CHANGE_NOTIFICATION,
    LATEST_PRODUCER_ID_BLOCK,
    LOG_DIR_EVENT_NOTIFICATION,
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
)


def broker_id(node_id: int) -> str:
    """Where a broker registers."""
    return f"{BROKER_IDS}/{node_id}"


def topic(name: str) -> str:
    """Where a topic's id and assignment are."""
    return f"{TOPICS}/{name}"


def topic_partitions(name: str) -> str:
    """The node above a topic's partitions."""
    return f"{TOPICS}/{name}/partitions"


def topic_partition(partition: TopicPartition) -> str:
    """The node above a partition's state."""
    return f"{topic_partitions(partition.topic)}/{partition.partition}"


def partition_state(partition: TopicPartition) -> str:
    """Where a partition's leader and ISR are."""
    return f"{topic_partition(partition)}/state"


def delete_topic(name: str) -> str:
    """The request to delete a topic."""
    return f"{DELETE_TOPICS}/{name}"


_ACLS = {PatternType.LITERAL: "/kafka-acl", PatternType.PREFIXED: "/kafka-acl-extended/prefixed"}
_ACL_CHANGES = {PatternType.LITERAL: ACL_CHANGES, PatternType.PREFIXED: EXTENDED_ACL_CHANGES}


def acls_of_type(pattern_type: PatternType, resource_type: ResourceType) -> str:
    """The node above the ACLs of the resources of one type."""
    return f"{_ACLS[pattern_type]}/{resource_type.title}"


def acls(pattern: ResourcePattern) -> str:
    """Where the ACLs of a pattern are; a name with a slash has no path."""
    return f"{acls_of_type(pattern.pattern_type, pattern.resource_type)}/{pattern.name}"


def acl_change(pattern: ResourcePattern) -> str:
    """Where to create the sequential node that reports a change of the ACLs of a pattern."""
    return f"{_ACL_CHANGES[pattern.pattern_type]}/{ACL_CHANGE_PREFIX}"


def acl_paths() -> tuple[str, ...]:
    """Created by an authorizer when it starts."""
    return (
        *(acls_of_type(pattern_type, kind) for pattern_type in _ACLS for kind in RESOURCE_TYPES),
        ACL_CHANGES,
        EXTENDED_ACL_CHANGES,
    )


def sequence_number(path: str) -> int:
    """The number that a sequential node was given."""
    digits = path[-10:]
    if not digits.isdecimal():
        raise ValueError(f"{path} is not the path of a sequential node")
    return int(digits)


class EntityType(StrEnum):
    """What can be configured."""

    TOPICS = "topics"
    BROKERS = "brokers"
    USERS = "users"
    CLIENTS = "clients"
    IPS = "ips"
    GROUPS = "groups"
    """Kafka keeps no settings of groups in ZooKeeper; this is where it would."""


DEFAULT_ENTITY = "<default>"
_TYPES = frozenset(str(entity_type) for entity_type in EntityType)
# Names of these types may contain a slash.
_ENCODED_TYPES = frozenset({EntityType.USERS, EntityType.CLIENTS, EntityType.GROUPS})
# A node cannot have such a name.
_DOTS = frozenset({".", ".."})


class ConfigEntity(NamedTuple):
    """Something that has settings of its own; the name None stands for the default of all of its type.

    A client of one user (`client_of_user`) has a second name, for its quotas.
    """

    type: EntityType
    name: str | None
    client_of_user: str | None = None
    is_client_of_user: bool = False

    @property
    def entity_path(self) -> str:
        """As change notifications name it: `users/anna/clients/app`."""
        own = f"{self.type}/{_encode_name(self.type, self.name)}"
        if not self.is_client_of_user:
            return own
        return f"{own}/{EntityType.CLIENTS}/{_encode_name(EntityType.CLIENTS, self.client_of_user)}"

    @property
    def path(self) -> str:
        """Where its settings are kept."""
        return f"{CONFIG}/{self.entity_path}"


def topic_entity(name: str) -> ConfigEntity:
    """The settings of a topic."""
    return ConfigEntity(EntityType.TOPICS, name)


def broker_entity(node_id: int | None) -> ConfigEntity:
    """The settings of a broker, or of all of them."""
    return ConfigEntity(EntityType.BROKERS, None if node_id is None else str(node_id))


def group_entity(group_id: str) -> ConfigEntity:
    """The settings of a group."""
    return ConfigEntity(EntityType.GROUPS, group_id)


def user_client_entity(user: str | None, client: str | None) -> ConfigEntity:
    """Quotas of a client id when a certain user uses it."""
    return ConfigEntity(EntityType.USERS, user, client, is_client_of_user=True)


def parse_entity_path(entity_path: str) -> ConfigEntity:
    """The inverse of `ConfigEntity.entity_path`; also of a path below /config."""
    match entity_path.removeprefix(f"{CONFIG}/").split("/"):
        case [EntityType.USERS, user, EntityType.CLIENTS, client] if user and client:
            return user_client_entity(
                _decode_name(EntityType.USERS, user), _decode_name(EntityType.CLIENTS, client)
            )
        case [entity_type, name] if entity_type in _TYPES and name:
            return ConfigEntity(EntityType(entity_type), _decode_name(EntityType(entity_type), name))
    raise DamagedPayload("configuration change", f"{entity_path!r} names nothing that can be configured")


def _encode_name(entity_type: EntityType, name: str | None) -> str:
    if name is None:
        return DEFAULT_ENTITY
    if entity_type not in _ENCODED_TYPES:
        return name
    if name in _DOTS:
        return name.replace(".", "%2E")
    # As Java's URLEncoder does, with %20 for a space and %2A for a star.
    return quote(name, safe="").replace("~", "%7E")


def _decode_name(entity_type: EntityType, text: str) -> str | None:
    if text == DEFAULT_ENTITY:
        return None
    return unquote(text) if entity_type in _ENCODED_TYPES else text
