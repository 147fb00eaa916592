"""Every API that this broker serves, with its versions; the file that handles it is named after it.

ApiVersions is answered and requests are checked by this table, so that a broker can be ready before the
files of `handlers/` are imported (ADR 4). `@handles` in a file must agree with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from odradek.protocol.api_key import ApiKey
from odradek.protocol.schema import Versions

SERVED: Mapping[ApiKey, Versions] = {
    ApiKey.PRODUCE: Versions(3, 13),
    ApiKey.FETCH: Versions(4, 18),
    ApiKey.LIST_OFFSETS: Versions(1, 11),
    ApiKey.METADATA: Versions(0, 13),
    ApiKey.OFFSET_COMMIT: Versions(2, 10),
    ApiKey.OFFSET_FETCH: Versions(1, 10),
    ApiKey.FIND_COORDINATOR: Versions(0, 6),
    ApiKey.JOIN_GROUP: Versions(0, 9),
    ApiKey.HEARTBEAT: Versions(0, 4),
    ApiKey.LEAVE_GROUP: Versions(0, 5),
    ApiKey.SYNC_GROUP: Versions(0, 5),
    ApiKey.DESCRIBE_GROUPS: Versions(0, 6),
    ApiKey.LIST_GROUPS: Versions(0, 5),
    ApiKey.API_VERSIONS: Versions(0, 4),
    ApiKey.CREATE_TOPICS: Versions(2, 7),
    ApiKey.DELETE_TOPICS: Versions(1, 6),
    ApiKey.DELETE_RECORDS: Versions(0, 2),
    ApiKey.INIT_PRODUCER_ID: Versions(0, 5),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Versions(2, 4),
    ApiKey.DESCRIBE_ACLS: Versions(1, 3),
    ApiKey.CREATE_ACLS: Versions(1, 3),
    ApiKey.DELETE_ACLS: Versions(1, 3),
    ApiKey.DESCRIBE_CONFIGS: Versions(1, 4),
    ApiKey.ALTER_CONFIGS: Versions(0, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Versions(0, 2),
    ApiKey.DESCRIBE_LOG_DIRS: Versions(0, 5),
    ApiKey.CREATE_PARTITIONS: Versions(0, 3),
    ApiKey.DELETE_GROUPS: Versions(0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Versions(0, 1),
    ApiKey.OFFSET_DELETE: Versions(0, 0),
    ApiKey.DESCRIBE_CLUSTER: Versions(0, 2),
    ApiKey.DESCRIBE_PRODUCERS: Versions(0, 0),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Versions(0, 1),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Versions(0, 1),
    ApiKey.LIST_CONFIG_RESOURCES: Versions(0, 1),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Versions(0, 0),
}
