"""The transactions of a compaction run: which batches are aborted, which markers can be removed. Pure.

A marker stays for as long as a batch of its transaction is left, and then for `delete.retention.ms` more,
so that readers of its data also see how it ended.

    batch                          result
    of an aborted transaction      its records go; its marker stays this time
    of another transaction         its marker stays
    abort marker                   may go if no batch of its transaction was seen, else its index entry stays
    commit marker                  may go if no batch of its transaction was seen
    emptied marker                 may go
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.log.segment.txn_index import AbortedTxn
from odradek.records.control import ControlType


class CleanedTransactions:
    """Follows the transactions of one pass over a log, from its first batch on; used by one thread."""

    __slots__ = ("_committed", "_kept_aborted", "_met", "_ongoing", "_upcoming")

    def __init__(self, aborted: Iterable[AbortedTxn] = ()) -> None:
        """`aborted`: every aborted transaction with a batch in the part of the log that is passed over."""
        self._upcoming = sorted(aborted, key=lambda txn: txn.first_offset, reverse=True)
        self._ongoing: dict[int, AbortedTxn] = {}  # by producer
        self._met: set[int] = set()  # producers with an aborted batch since the last marker
        self._committed: set[int] = set()  # … a batch that is not aborted
        self._kept_aborted: list[AbortedTxn] = []

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Whether a transactional batch, the next one of the log, belongs to an aborted transaction."""
        self._advance(last_offset)
        aborted = self._ongoing.get(producer_id)
        if aborted is None or aborted.last_offset < last_offset:
            self._committed.add(producer_id)
            return False
        self._met.add(producer_id)
        return True

    def may_drop_marker(self, producer_id: int, last_offset: int, control_type: ControlType | None) -> bool:
        """Whether the next marker of the log has no batches left; None: an emptied marker."""
        self._advance(last_offset)
        if control_type is None:
            return True
        if control_type is ControlType.COMMIT:
            was_met = producer_id in self._committed
            self._committed.discard(producer_id)
            return not was_met
        if control_type is not ControlType.ABORT:
            return False
        aborted = self._ongoing.pop(producer_id, None)
        if aborted is None or producer_id not in self._met:
            return True
        self._met.discard(producer_id)
        self._kept_aborted.append(aborted)
        return False

    def _advance(self, offset: int) -> None:
        """Add the aborted transactions that begin up to `offset`."""
        while self._upcoming and self._upcoming[-1].first_offset <= offset:
            aborted = self._upcoming.pop()
            self._ongoing[aborted.producer_id] = aborted

    def take_kept_aborted(self) -> list[AbortedTxn]:
        """The transactions whose abort marker stays, since the last call; in the order of their markers."""
        taken, self._kept_aborted = self._kept_aborted, []
        return taken
