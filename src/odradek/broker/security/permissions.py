"""What each API needs to be allowed: one row per API, so that none can be left out.

A row for the cluster that is `of_request` is enforced by the dispatcher before the handler is called. The
rest depends on what the request names: there the handler asks, and reports each refusal in its own row.
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.broker.security.acls import Operation, ResourceType
from odradek.protocol.api_key import ApiKey


class Permission(NamedTuple):
    """An operation on a kind of resource."""

    operation: Operation
    resource_type: ResourceType
    of_request: bool = False


def _topic(operation: Operation) -> Permission:
    return Permission(operation, ResourceType.TOPIC)


def _group(operation: Operation) -> Permission:
    return Permission(operation, ResourceType.GROUP)


def _transaction(operation: Operation) -> Permission:
    return Permission(operation, ResourceType.TRANSACTIONAL_ID)


def _cluster(operation: Operation) -> Permission:
    """Only some of its requests need it, or it replaces others."""
    return Permission(operation, ResourceType.CLUSTER)


def _whole(operation: Operation) -> Permission:
    """Every request needs it."""
    return Permission(operation, ResourceType.CLUSTER, of_request=True)


def _of_configs(operation: Operation) -> tuple[Permission, ...]:
    """On whatever has the settings: a topic, a group, or a broker as part of the cluster."""
    return _topic(operation), _group(operation), _cluster(operation)


_BETWEEN_BROKERS = (_whole(Operation.CLUSTER_ACTION),)
_ANYBODY: tuple[Permission, ...] = ()

PERMISSIONS: dict[ApiKey, tuple[Permission, ...]] = {
    ApiKey.PRODUCE: (_topic(Operation.WRITE), _transaction(Operation.WRITE)),
    ApiKey.FETCH: (_topic(Operation.READ), _cluster(Operation.CLUSTER_ACTION)),
    ApiKey.LIST_OFFSETS: (_topic(Operation.DESCRIBE),),
    ApiKey.METADATA: (_topic(Operation.DESCRIBE), _topic(Operation.CREATE), _cluster(Operation.CREATE)),
    ApiKey.LEADER_AND_ISR: _BETWEEN_BROKERS,
    ApiKey.STOP_REPLICA: _BETWEEN_BROKERS,
    ApiKey.UPDATE_METADATA: _BETWEEN_BROKERS,
    ApiKey.CONTROLLED_SHUTDOWN: _BETWEEN_BROKERS,
    ApiKey.OFFSET_COMMIT: (_group(Operation.READ), _topic(Operation.READ)),
    ApiKey.OFFSET_FETCH: (_group(Operation.DESCRIBE), _topic(Operation.DESCRIBE)),
    ApiKey.FIND_COORDINATOR: (_group(Operation.DESCRIBE), _transaction(Operation.DESCRIBE)),
    ApiKey.JOIN_GROUP: (_group(Operation.READ),),
    ApiKey.HEARTBEAT: (_group(Operation.READ),),
    ApiKey.LEAVE_GROUP: (_group(Operation.READ),),
    ApiKey.SYNC_GROUP: (_group(Operation.READ),),
    ApiKey.DESCRIBE_GROUPS: (_group(Operation.DESCRIBE),),
    ApiKey.LIST_GROUPS: (_cluster(Operation.DESCRIBE), _group(Operation.DESCRIBE)),
    ApiKey.SASL_HANDSHAKE: _ANYBODY,
    ApiKey.API_VERSIONS: _ANYBODY,
    ApiKey.CREATE_TOPICS: (
        _cluster(Operation.CREATE),
        _topic(Operation.CREATE),
        _topic(Operation.DESCRIBE_CONFIGS),
    ),
    ApiKey.DELETE_TOPICS: (_topic(Operation.DELETE), _topic(Operation.DESCRIBE)),
    ApiKey.DELETE_RECORDS: (_topic(Operation.DELETE),),
    ApiKey.INIT_PRODUCER_ID: (
        _transaction(Operation.WRITE),
        _cluster(Operation.IDEMPOTENT_WRITE),
        _topic(Operation.WRITE),
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (_topic(Operation.DESCRIBE), _cluster(Operation.CLUSTER_ACTION)),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        _transaction(Operation.WRITE),
        _topic(Operation.WRITE),
        _cluster(Operation.CLUSTER_ACTION),
    ),
    ApiKey.ADD_OFFSETS_TO_TXN: (_transaction(Operation.WRITE), _group(Operation.READ)),
    ApiKey.END_TXN: (_transaction(Operation.WRITE),),
    # Either of the two: an administrator ends a transaction that hangs (KIP-1037).
    ApiKey.WRITE_TXN_MARKERS: (_cluster(Operation.CLUSTER_ACTION), _cluster(Operation.ALTER)),
    ApiKey.TXN_OFFSET_COMMIT: (
        _transaction(Operation.WRITE),
        _group(Operation.READ),
        _topic(Operation.READ),
    ),
    ApiKey.DESCRIBE_ACLS: (_whole(Operation.DESCRIBE),),
    ApiKey.CREATE_ACLS: (_whole(Operation.ALTER),),
    ApiKey.DELETE_ACLS: (_whole(Operation.ALTER),),
    ApiKey.DESCRIBE_CONFIGS: _of_configs(Operation.DESCRIBE_CONFIGS),
    ApiKey.ALTER_CONFIGS: _of_configs(Operation.ALTER_CONFIGS),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (_whole(Operation.ALTER),),
    ApiKey.DESCRIBE_LOG_DIRS: (_whole(Operation.DESCRIBE),),
    ApiKey.SASL_AUTHENTICATE: _ANYBODY,
    ApiKey.CREATE_PARTITIONS: (_topic(Operation.ALTER),),
    ApiKey.DELETE_GROUPS: (_group(Operation.DELETE),),
    ApiKey.ELECT_LEADERS: (_whole(Operation.ALTER),),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _of_configs(Operation.ALTER_CONFIGS),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (_whole(Operation.ALTER),),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (_whole(Operation.DESCRIBE),),
    ApiKey.OFFSET_DELETE: (_group(Operation.DELETE), _topic(Operation.READ)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (_whole(Operation.DESCRIBE_CONFIGS),),
    ApiKey.ALTER_CLIENT_QUOTAS: (_whole(Operation.ALTER_CONFIGS),),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (_whole(Operation.DESCRIBE),),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (_whole(Operation.ALTER),),
    ApiKey.ALTER_PARTITION: _BETWEEN_BROKERS,
    ApiKey.UPDATE_FEATURES: (_whole(Operation.ALTER),),
    ApiKey.DESCRIBE_CLUSTER: _ANYBODY,
    ApiKey.DESCRIBE_PRODUCERS: (_topic(Operation.READ),),
    ApiKey.DESCRIBE_TRANSACTIONS: (_transaction(Operation.DESCRIBE),),
    ApiKey.LIST_TRANSACTIONS: (_transaction(Operation.DESCRIBE),),
    ApiKey.ALLOCATE_PRODUCER_IDS: _BETWEEN_BROKERS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (_group(Operation.READ), _topic(Operation.DESCRIBE)),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (_group(Operation.DESCRIBE), _topic(Operation.DESCRIBE)),
    ApiKey.LIST_CONFIG_RESOURCES: (_whole(Operation.DESCRIBE_CONFIGS),),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (_topic(Operation.DESCRIBE),),
}


def needed_of_request(api_key: ApiKey) -> tuple[Operation, ...]:
    """What the dispatcher demands on the cluster before the handler sees the request."""
    return tuple(one.operation for one in PERMISSIONS.get(api_key, ()) if one.of_request)
