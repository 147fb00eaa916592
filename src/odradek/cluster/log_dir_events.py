"""Notifies the controller that the log directories of a broker must be checked again.

Kafka's brokers do this when a disk has failed. Ours also do it when a full one has space again: the
controller sends all replicas of that broker again, and the response has those that are served.
"""

from __future__ import annotations

from odradek.coordination import paths
from odradek.coordination.payloads import encode_log_dir_event
from odradek.coordination.store import Store


async def notify_log_dir_event(store: Store, broker_id: int) -> None:
    """Write the notification; StoreError if that fails."""
    await store.create(paths.LOG_DIR_EVENT_PREFIX, encode_log_dir_event(broker_id), sequential=True)
