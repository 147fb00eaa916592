"""One file per API; importing this package fills the table of handlers, in key order."""

from odradek.broker.handlers import (
    api_versions,
    delete_records,
    describe_cluster,
    describe_log_dirs,
    describe_topic_partitions,
    fetch,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)

__all__ = [
    "api_versions",
    "delete_records",
    "describe_cluster",
    "describe_log_dirs",
    "describe_topic_partitions",
    "fetch",
    "init_producer_id",
    "list_offsets",
    "metadata",
    "offset_for_leader_epoch",
    "produce",
]
