"""A broker's note to the controller that its log directories are to be looked at again.

Kafka's brokers write it when a disk has failed. Ours also write it when a full one has room: the controller
names all replicas of that broker again, and from the answer it learns which of them are served.
"""

from __future__ import annotations

from odradek.coordination import paths
from odradek.coordination.payloads import encode_log_dir_event
from odradek.coordination.store import Store


async def note_log_dir_event(store: Store, broker_id: int) -> None:
    """Have the controller ask; StoreError if the note cannot be written."""
    await store.create(paths.LOG_DIR_EVENT_PREFIX, encode_log_dir_event(broker_id), sequential=True)
