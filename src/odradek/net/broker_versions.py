"""The version of each request between brokers: that of Kafka 3.9, so that both may be in one cluster.

Brokers do not negotiate with each other, as in Kafka with `inter.broker.protocol.version`.
"""

from __future__ import annotations

from collections.abc import Mapping

from odradek.protocol.api_key import ApiKey

VERSIONS: Mapping[ApiKey, int] = {
    ApiKey.FETCH: 17,
    ApiKey.LIST_OFFSETS: 9,
    ApiKey.LEADER_AND_ISR: 7,
    ApiKey.STOP_REPLICA: 4,
    ApiKey.UPDATE_METADATA: 8,
    ApiKey.CONTROLLED_SHUTDOWN: 3,
    ApiKey.CREATE_TOPICS: 7,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 5,
    ApiKey.WRITE_TXN_MARKERS: 1,
    ApiKey.ALTER_PARTITION: 3,
    ApiKey.ALLOCATE_PRODUCER_IDS: 0,
}
