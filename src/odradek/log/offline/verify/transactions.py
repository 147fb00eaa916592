"""Judges the transaction indexes of a partition by the markers in its log and the transactions they end."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from odradek.log.producers.producer_states import Marker
from odradek.log.segment.txn_index import ENTRY_SIZE, VERSION, AbortedTxn
from odradek.records.batch import BatchHeader

_ENTRY = struct.Struct(">hqqqq")

Problem = tuple[int | None, str]


def read_entries(content: bytes) -> tuple[dict[int, tuple[int, AbortedTxn]], list[Problem]]:
    """The entries of a transaction index with their places, by last offset; and what is wrong with them."""
    problems: list[Problem] = []
    entries: dict[int, tuple[int, AbortedTxn]] = {}
    whole = len(content) - len(content) % ENTRY_SIZE
    if whole < len(content):
        problems.append((whole, f"{len(content)} bytes are not a number of entries"))
    last_offset = -1
    for number, (version, *fields) in enumerate(_ENTRY.iter_unpack(content[:whole])):
        aborted = AbortedTxn(*fields)
        if version != VERSION:
            problems.append((number * ENTRY_SIZE, f"version {version} is unknown"))
        if aborted.last_offset <= last_offset:
            problems.append((number * ENTRY_SIZE, f"{aborted} is out of order"))
        last_offset = aborted.last_offset
        entries[last_offset] = (number * ENTRY_SIZE, aborted)
    return entries, problems


@dataclass(slots=True)
class _OpenTxn:
    """A transaction that no marker has ended yet."""

    first_offset: int
    has_records: bool


class TransactionCheck:
    """Follows the transactions of one partition through its segments.

    Exact for as long as the log is complete: it begins at offset 0 and has no gap. Then every aborted
    transaction has its entry, and each entry these very offsets. Where compaction or retention has taken
    something away, an entry only must fit to what is left.
    """

    def __init__(self, *, is_complete: bool) -> None:
        self.is_complete = is_complete
        self.problems: list[Problem] = []
        self._entries: dict[int, tuple[int, AbortedTxn]] = {}
        self._open: dict[int, _OpenTxn] = {}
        self._last_markers: dict[int, int] = {}

    def enter_segment(self, content: bytes) -> None:
        """What follows is in another segment, whose transaction index holds these bytes."""
        self._entries, self.problems = read_entries(content)

    def add_batch(self, header: BatchHeader, marker: Marker | None) -> None:
        """The next batch that has a producer id; `marker` is given for one that ends a transaction."""
        producer_id = header.producer_id
        if not header.is_control:
            if header.is_transactional:
                txn = self._open.setdefault(producer_id, _OpenTxn(header.base_offset, has_records=False))
                txn.has_records = txn.has_records or header.record_count > 0
            return
        if marker is None:
            return
        txn_or_none = self._open.pop(producer_id, None)
        if not marker.is_commit:
            self._check_abort(header, txn_or_none)
        self._last_markers[producer_id] = header.base_offset

    def _check_abort(self, header: BatchHeader, txn: _OpenTxn | None) -> None:
        offset = header.base_offset
        position, entry = self._entries.pop(offset, (None, None))
        if entry is None:
            if txn is not None and txn.has_records:
                self.problems.append(
                    (
                        None,
                        f"no entry for producer {header.producer_id}, whose transaction aborted at {offset}",
                    )
                )
            return
        first = txn.first_offset if txn is not None else None
        if entry.producer_id != header.producer_id:
            self.problems.append(
                (position, f"producer {entry.producer_id}, but the marker has {header.producer_id}")
            )
        elif self.is_complete:
            stable = min((one.first_offset for one in self._open.values()), default=offset + 1)
            if first != entry.first_offset or stable != entry.last_stable_offset:
                self.problems.append(
                    (position, f"{entry}, but the log has first offset {first}, stable {stable}")
                )
        elif not self._could_be(entry, first):
            self.problems.append((position, f"{entry} does not fit to the markers in the log"))

    def _could_be(self, entry: AbortedTxn, first_offset: int | None) -> bool:
        begins_after = self._last_markers.get(entry.producer_id, -1)
        highest = entry.last_offset if first_offset is None else first_offset
        return (
            begins_after < entry.first_offset <= highest
            and 0 <= entry.last_stable_offset <= entry.last_offset + 1
        )

    def finish_segment(self) -> list[Problem]:
        """What is wrong with the segment's index, once all its batches were taken."""
        for position, entry in self._entries.values():
            self.problems.append((position, f"no abort marker is at offset {entry.last_offset}"))
        return self.problems

    def lose_track(self) -> None:
        """Batches were skipped: nothing is exact from here on."""
        self.is_complete = False
        self._open.clear()
