"""The last failures, to report why a batch timed out. No I/O."""

from __future__ import annotations

import logging

from odradek.client.broker_errors import broker_error
from odradek.client.errors import AdvertisedListenerUnreachable
from odradek.client.metadata import Metadata
from odradek.client.producer.batches.accumulator import PartitionQueue
from odradek.common.error_codes import ErrorCode

METADATA = "metadata"
PRODUCER_ID = "producer id"

_log = logging.getLogger("odradek.producer")


class FailureLog:
    """The last failure of each source: a broker (its id), a partition (its queue), metadata…

    Owned by the sender.
    """

    def __init__(self) -> None:
        self._known: dict[object, BaseException] = {}

    def note(self, what: object, error: BaseException) -> None:
        """Record a failure. A mistake in a broker's settings is logged at once: retries do not help."""
        if isinstance(error, AdvertisedListenerUnreachable) and what not in self._known:
            _log.warning("%s", error)
        else:
            _log.debug("%s: %s", what, error)
        self._known[what] = error

    def over(self, what: object) -> None:
        """Record a success."""
        if self._known:
            self._known.pop(what, None)

    def why(self, queue: PartitionQueue, metadata: Metadata) -> BaseException | None:
        """Why batches of a partition are not delivered, as far as known."""
        known = self._known
        topic = metadata.topics.get(queue.topic)
        view = topic.partitions.get(queue.partition) if topic is not None else None
        if view is not None and view.leader_id not in metadata.nodes:
            return broker_error(ErrorCode.LEADER_NOT_AVAILABLE, "the partition has no leader")
        leader = view.leader_id if view is not None else None
        return known.get(leader) or known.get(METADATA) or known.get(PRODUCER_ID) or known.get(queue)
