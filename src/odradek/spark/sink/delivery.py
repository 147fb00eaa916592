"""How rows get into topics: what a task does with them, and what the driver does when all tasks have ended.

Both faces of the sink, batch.py and stream.py, only call a Delivery; another guarantee than at least once is
another class here and another value of the option `delivery`.

At least once: a task ends when the last of its rows is acknowledged by the brokers. A task, a job or a
micro-batch that is repeated writes its rows again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
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


class AtLeastOnce(Delivery):
    """Every row is in its topic when the task ends, and may be there twice after a repetition."""

    def __init__(self, options: SinkOptions, layout: RowLayout) -> None:
        self.options = options
        self.layout = layout

    def write(self, batches: Iterable[pa.RecordBatch]) -> WrittenRows:
        """Send all rows and wait for the acknowledgements."""
        pending: deque[tuple[str, TableDelivery]] = deque()
        rows = 0
        try:
            producer = None
            for topic, table in tables_by_topic(self.layout, batches):
                with _named(topic):
                    producer = producer or producer_for(self.options)
                    pending.append((topic, producer.send_table(topic, table)))
                rows += table.num_rows
                _settle(pending, _MOST_PENDING)
            _settle(pending, 0)
        except BaseException:
            drop_producer(self.options)
            raise
        return WrittenRows(rows)


def new_delivery(options: SinkOptions, layout: RowLayout) -> Delivery:
    """The delivery that the options ask for."""
    return AtLeastOnce(options, layout)


def _settle(pending: deque[tuple[str, TableDelivery]], most: int) -> None:
    """Wait until no more than `most` tables are on their way; an early failure is met early."""
    while pending and (len(pending) > most or pending[0][1].done()):
        topic, delivery = pending.popleft()
        with _named(topic):
            delivery.result()


@contextmanager
def _named(topic: str) -> Iterator[None]:
    try:
        yield
    except WrongRows:
        raise
    except (OdradekError, OSError) as error:
        raise WriteFailed(f"cannot write into topic {topic!r}: {error or type(error).__name__}") from None
