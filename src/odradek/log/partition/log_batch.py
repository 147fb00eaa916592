# cython: annotation_typing=False
"""A batch as it goes into the log.

Compiled by Cython (log_batch.pxd has the C types), or interpreted as is.
"""

from __future__ import annotations

from odradek.log.producers.producer_states import Marker
from odradek.records.batch import BatchHeader


class LogBatch:
    """What the log and its indexes need. `header` only with a producer id, `marker` only if it is one."""

    __slots__ = (
        "base_offset",
        "header",
        "last_offset",
        "leader_epoch",
        "marker",
        "max_timestamp_ms",
        "size",
    )

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        size: int,
        max_timestamp_ms: int,
        leader_epoch: int,
        header: BatchHeader | None = None,
        marker: Marker | None = None,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.size = size
        self.max_timestamp_ms = max_timestamp_ms
        self.leader_epoch = leader_epoch
        self.header = header
        self.marker = marker
