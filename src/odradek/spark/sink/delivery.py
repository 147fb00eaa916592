"""How rows get into topics: what a task does with them, and what the driver does when all tasks have ended.

Both faces of the sink, batch.py and stream.py, only call a Delivery; the option `delivery` chooses which
(odradek/spark/deliveries.py). Exactly once is in transactions/by_commit.py.

At least once: a task ends when the last of its rows is acknowledged by the brokers. A task, a job or a
micro-batch that is repeated writes its rows again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import WriterCommitMessage

from odradek.common.errors import OdradekError
from odradek.spark.sink.options import SinkOptions
from odradek.spark.sink.producers import drop_producer, producer_for
from odradek.spark.sink.rows import RowLayout, WrongRows, tables_by_topic

if TYPE_CHECKING:
    import pyarrow as pa

    from odradek.client.producer.producer import Producer
    from odradek.client.producer.tables import TableDelivery

_MOST_PENDING = 64
"""Tables whose rows are on their way; the producer's memory bounds their bytes."""


class WriteFailed(OdradekError):
    """Rows could not be delivered; the message names the topic and the cause."""


@dataclass(frozen=True, slots=True)
class WrittenRows(WriterCommitMessage):
    """What a task has written, as the driver gets it."""

    rows: int


class Delivery(ABC):
    """One guarantee. It is pickled and sent to the tasks."""

    @abstractmethod
    def write(self, batches: Iterable[pa.RecordBatch]) -> WrittenRows:
        """In a task: deliver all rows."""

    def commit(self, written: Sequence[WriterCommitMessage | None], batch_id: int | None = None) -> None:  # noqa: B027
        """On the driver: all tasks have ended well."""

    def abort(self, written: Sequence[WriterCommitMessage | None], batch_id: int | None = None) -> None:  # noqa: B027
        """On the driver: some task has failed for good."""


NewDelivery = Callable[[SinkOptions, RowLayout], Delivery]


class AtLeastOnce(Delivery):
    """Every row is in its topic when the task ends, and may be there twice after a repetition."""

    def __init__(self, options: SinkOptions, layout: RowLayout) -> None:
        self.options = options
        self.layout = layout

    def write(self, batches: Iterable[pa.RecordBatch]) -> WrittenRows:
        """Send all rows and wait for the acknowledgements."""
        settings, sender, rows = self.options.producer, None, 0
        try:
            for topic, table in tables_by_topic(self.layout, batches):
                if sender is None:
                    with named(topic):
                        sender = TableSender(producer_for(settings))
                sender.send(topic, table)
                rows += table.num_rows
            if sender is not None:
                sender.finish()
        except BaseException:
            drop_producer(settings)
            raise
        return WrittenRows(rows)


class TableSender:
    """Sends tables with one producer, and knows of which topic an error is."""

    def __init__(self, producer: Producer[bytes, bytes]) -> None:
        self._producer = producer
        self._pending: deque[tuple[str, TableDelivery]] = deque()

    def send(self, topic: str, table: pa.Table) -> None:
        """Send rows of one topic; WriteFailed, also for rows that were sent before."""
        with named(topic):
            self._pending.append((topic, self._producer.send_table(topic, table)))
        self._settle(_MOST_PENDING)

    def finish(self) -> None:
        """Wait until all rows are acknowledged."""
        self._settle(0)

    def _settle(self, most: int) -> None:
        """Wait until no more than `most` tables are on their way; an early failure is met early."""
        pending = self._pending
        while pending and (len(pending) > most or pending[0][1].done()):
            topic, delivery = pending.popleft()
            with named(topic):
                delivery.result()


@contextmanager
def named(topic: str) -> Iterator[None]:
    """An error within the block becomes WriteFailed with the topic's name."""
    try:
        yield
    except WrongRows:
        raise
    except (OdradekError, OSError) as error:
        raise WriteFailed(f"cannot write into topic {topic!r}: {error or type(error).__name__}") from None
