"""The driver's part: begins a transaction for each micro-batch, reads the marker, commits both together."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from odradek.client.admin.admin import Admin
from odradek.client.committed_offsets import OffsetAndMetadata
from odradek.client.config import ClientConfig
from odradek.client.errors import BrokerError, ClientError
from odradek.client.producer.batches.idempotence import ProducerId
from odradek.client.producer.transactions.driver import TransactionDriver
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.spark.transactions import hooks
from odradek.spark.transactions.errors import (
    FencedByOtherDriver,
    ForgottenByBrokers,
    TransactionFailed,
    TransactionTooLong,
    failure_of,
    too_long,
)
from odradek.spark.transactions.marker import (
    MicroBatch,
    is_committed,
    last_micro_batch,
    marker_rows,
    places_of,
)

_log = logging.getLogger("odradek.spark")

IDLE_S = 60.0
"""After so long without a transaction an id is renewed: brokers may have forgotten it."""


class QueryTransactions:
    """The transactions of one query, one after the other. `name` is the transactional id and the group.

    `settings` are those of a producer, without transactional_id. Not for several threads at once.
    """

    def __init__(self, name: str, settings: Mapping[str, Any], *, idle_s: float = IDLE_S) -> None:
        self.name = name
        self._idle_s = idle_s
        self._settings = dict(settings)
        self._driver = TransactionDriver(**{**settings, "transactional_id": name})
        self.timeout_ms = self._driver.config.transaction_timeout_ms
        self._producer: ProducerId | None = None
        self._next: ProducerId | None = None
        self._last: MicroBatch | None = None
        self._places: frozenset[TopicPartition] = frozenset()
        self._known: frozenset[TopicPartition] = frozenset()
        """Partitions of sources and of markers that this cluster has."""
        self._begun = self._used = time.monotonic()

    def begin(self, batch: MicroBatch | None = None) -> ProducerId | None:
        """Fence what was before, and return what tasks write with; None if the batch is committed already.

        After the first time only drivers that came before are fenced: FencedByOtherDriver if one came later.
        """
        hooks.reach(hooks.BEFORE_BEGIN)
        self._begun = time.monotonic()
        current = self._next or self._producer
        with self._explained():
            if current is None or self._is_idle:
                self._start(batch, current)
            elif self._next is None:
                self._producer = self._driver.init_producer_id(current)
            else:
                self._producer = current
        self._next, self._used = None, time.monotonic()
        if batch is not None and is_committed(self._last, batch, self.name):
            _log.info("micro-batch %d of %s is committed already", batch.batch_id, self.name)
            return None
        hooks.reach(hooks.AFTER_BEGIN)
        return self._producer

    def _start(self, batch: MicroBatch | None, current: ProducerId | None) -> None:
        """Get an id of the coordinator, which may have forgotten `current`, and see what is committed."""
        if batch is not None:  # a name that is not ours is refused before anybody is fenced
            # An open transaction of an earlier attempt is not waited for: only the fence ends it.
            before = self._driver.committed(self.name, require_stable=False)
            is_committed(last_micro_batch(before, self.name), batch, self.name)
        self._producer = self._driver.init_producer_id(current)
        if batch is not None:
            markers = self._markers()
            self._last = last_micro_batch(markers, self.name)
            self._places = places_of(self._last, markers)

    @property
    def _is_idle(self) -> bool:
        return time.monotonic() - self._used >= self._idle_s

    def _markers(self) -> dict[TopicPartition, OffsetAndMetadata]:
        found = self._driver.committed(self.name)
        # A first commit that the group's coordinator is still completing only shows where it is asked for.
        return found or self._driver.committed(self.name, self._partitions())

    def _partitions(self) -> set[TopicPartition]:
        known = set(ClientConfig.__dataclass_fields__)
        given: dict[str, Any] = {key: value for key, value in self._settings.items() if key in known}
        with Admin(**given) as admin:
            names = [topic.name for topic in admin.list_topics()]
            described = admin.describe_topics(names).items() if names else ()
            return {
                TopicPartition(name, one.partition)
                for name, outcome in described
                if not isinstance(outcome, BrokerError)
                for one in outcome.partitions
            }

    def commit(
        self,
        batch: MicroBatch | None,
        written: Mapping[TopicPartition, int],
        source_ends: Mapping[TopicPartition, int],
    ) -> None:
        """Commit the rows and the marker. `written` has the partitions that rows went into."""
        assert self._producer is not None
        is_empty = not written
        marker = batch and batch.after(self._last)
        with self._explained():
            if marker is not None:
                is_empty = not self._commit_marker(marker, written, source_ends) and is_empty
            hooks.reach(hooks.BEFORE_END)
        with self._explained(is_ending=True):
            if not is_empty:
                following = self._driver.end_txn(self._producer)
                # In v2 the end gives the next epoch; in v1 the next micro-batch asks for it.
                self._next = following if following != self._producer else None
            hooks.reach(hooks.AFTER_END)
        self._last, self._used = marker, time.monotonic()

    def _commit_marker(
        self,
        marker: MicroBatch,
        written: Mapping[TopicPartition, int],
        source_ends: Mapping[TopicPartition, int],
    ) -> bool:
        """Whether there was a partition to put the marker on."""
        assert self._producer is not None
        unknown = (source_ends.keys() | self._places) - self._known
        if unknown:
            self._known |= self._driver.existing(unknown)
        # The source may be in another cluster, or a topic of it gone.
        ends = {partition: offset for partition, offset in source_ends.items() if partition in self._known}
        rows = marker_rows(marker, self._places & self._known, written, ends)
        if not rows:
            return False
        hooks.reach(hooks.BEFORE_MARKER)
        self._driver.txn_offset_commit(self._producer, rows, self.name)
        self._places = frozenset(rows)
        self._known |= self._places
        return True

    def abort(self) -> TransactionFailed | None:
        """Abort what is open, and raise the epoch, so that a late task cannot write any more.

        Returns what has taken the transaction away, if something has: then that is why the tasks failed.
        """
        if self._producer is None:
            return None
        try:
            with self._explained():
                ended = self._end_open(self._producer)
        except (FencedByOtherDriver, TransactionTooLong) as taken:
            return taken
        except ForgottenByBrokers as forgotten:
            # Nothing is open, and the next micro-batch begins as the first one did.
            self._producer = self._next = None
            return forgotten
        except TransactionFailed:
            _log.warning("the transaction of %s is left open until the next one, or its time-out", self.name)
            return None
        if self._elapsed_ms >= self.timeout_ms:  # v2 answers an abort after the time-out like any other
            return too_long(self.name, self._elapsed_ms, self.timeout_ms)
        if ended != self._producer:
            self._next = ended
            return None
        try:
            self._next = self._driver.init_producer_id(ended)
        except (KafkaError, ClientError) as error:
            # Not by another driver: in v1 a late task may have begun a transaction again, which this aborts.
            _log.warning("the epoch of %s could not be raised: %s", self.name, error)
        return None

    def _end_open(self, producer: ProducerId) -> ProducerId:
        """Abort what is open, if there is something; in v2 that raises the epoch."""
        try:
            return self._driver.end_txn(producer, commit=False)
        except BrokerError as error:
            if error.error_code != ErrorCode.INVALID_TXN_STATE:
                raise
            return producer  # nothing was begun, or it has ended

    @property
    def _elapsed_ms(self) -> float:
        return (time.monotonic() - self._begun) * 1000

    @contextmanager
    def _explained(self, *, is_ending: bool = False) -> Iterator[None]:
        try:
            yield
        except (KafkaError, ClientError) as error:
            raise failure_of(
                error, self.name, self._elapsed_ms, self.timeout_ms, is_ending=is_ending
            ) from error

    def close(self) -> None:
        """Close the connections; what is open stays open."""
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
