"""Transactional producers and a committed reader that record what they did, for the history checker."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as ConfluentProducer

from faults.cluster.readers import ConfluentReader, FinalReader
from faults.cluster.values import encode_value
from faults.cluster.worker import SILENT, Work, Worker
from odradek import AbortableTransactionError, DeadlineExceeded, Producer, RecordMetadata, TransactionError
from odradek.common.errors import OdradekError
from odradek.testing.history.operations import End, Outcome, Send, TransactionEnd
from odradek.testing.history.recorder import now_ms

TIMEOUT_MS = 10_000
PATIENCE_SECONDS = 60
RECORDS_A_PARTITION = 2


class GaveUp(Exception):
    """The producer can have no more transactions; the end of the present one is not known."""


class Aborted(Exception):
    """The transaction was certainly aborted."""


class TransactionalWorker(Worker):
    """Transactions over all partitions, a third of them aborted; after a failure a new producer goes on."""

    def __init__(self, work: Work, directory: Path, seed: int) -> None:
        super().__init__(work, directory)
        self._random = random.Random(f"{seed} {work.name}")
        self._number = 0

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                self.begin_producer()
                while not self.stopping.is_set():
                    self._do_transaction()
            except GaveUp:
                continue
            finally:
                self.end_producer()

    def _do_transaction(self) -> None:
        name = f"{self.work.name}-{self._number}"
        commits = self._random.random() < 2 / 3
        end = End.UNKNOWN
        try:
            self.begin()
            for _ in range(RECORDS_A_PARTITION):
                for partition in range(self.work.partitions):
                    self._number += 1
                    self.send(partition, self._number, name)
            self.end(commit=commits)
            end = End.COMMITTED if commits else End.ABORTED
        except Aborted:
            end = End.ABORTED
        finally:
            self.record(TransactionEnd(self.work.name, now_ms(), name, end))

    def value(self, number: int) -> bytes:
        return encode_value(f"{self.work.name}-{number}", self.work.size)

    def sent(self, partition: int, number: int, transaction: str, offset: int | None) -> None:
        """Record what became of a send; None: nobody knows, -1: acknowledged without an offset."""
        work, value = self.work, f"{self.work.name}-{number}"
        outcome, known = (Outcome.UNKNOWN, -1) if offset is None else (Outcome.ACKNOWLEDGED, offset)
        send = Send(work.name, now_ms(), work.topic, partition, number, value, outcome, known)
        self.record(replace(send, transaction=transaction))

    @abstractmethod
    def begin_producer(self) -> None:
        """Make a producer; the transaction of an earlier one is ended by it."""

    @abstractmethod
    def end_producer(self) -> None:
        """Drop the producer."""

    @abstractmethod
    def begin(self) -> None: ...

    @abstractmethod
    def send(self, partition: int, number: int, transaction: str) -> None: ...

    @abstractmethod
    def end(self, *, commit: bool) -> None:
        """Commit or abort; Aborted or GaveUp if it cannot be done."""


class LibrdkafkaTransactions(TransactionalWorker):
    """Transactions v1."""

    _producer: ConfluentProducer

    def begin_producer(self) -> None:
        settings = {
            "bootstrap.servers": self.work.bootstrap,
            "transactional.id": self.work.name,
            "transaction.timeout.ms": TIMEOUT_MS,
            "message.timeout.ms": TIMEOUT_MS,
            "socket.timeout.ms": 3000,
            "linger.ms": 1,
        }
        self._producer = ConfluentProducer(settings, logger=SILENT)
        self._finish(lambda: self._producer.init_transactions(PATIENCE_SECONDS))

    def end_producer(self) -> None:
        self._producer.purge()
        self._producer.poll(0)

    def begin(self) -> None:
        self._finish(self._producer.begin_transaction)

    def send(self, partition: int, number: int, transaction: str) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            offset = None if error is not None else message.offset()
            self.sent(partition, number, transaction, -1 if error is None and offset is None else offset)

        try:
            self._producer.produce(
                self.work.topic, self.value(number), partition=partition, on_delivery=delivered
            )
        except KafkaException as error:
            self._finish(self._abort)
            raise Aborted from error

    def end(self, *, commit: bool) -> None:
        if not commit:
            self._finish(self._abort)
            return
        try:
            self._finish(lambda: self._producer.commit_transaction(PATIENCE_SECONDS))
        except KafkaException as error:
            self._finish(self._abort)
            raise Aborted from error

    def _abort(self) -> None:
        self._producer.abort_transaction(PATIENCE_SECONDS)

    def _finish(self, call: Callable[[], object]) -> None:
        """Repeat a call that may be repeated; a KafkaException that takes an abort is left to the caller."""
        while True:
            try:
                call()
                return
            except KafkaException as error:
                cause = error.args[0]
                if cause.txn_requires_abort():
                    raise
                if not cause.retriable():
                    raise GaveUp(str(error)) from error


class OurTransactions(TransactionalWorker):
    """Transactions v2."""

    _producer: Producer[bytes, bytes] | None = None

    def begin_producer(self) -> None:
        try:
            self._producer = Producer(
                bootstrap_servers=self.work.bootstrap,
                transactional_id=self.work.name,
                transaction_timeout_ms=TIMEOUT_MS,
                delivery_timeout_ms=TIMEOUT_MS,
                request_timeout_ms=3000,
                linger_ms=1,
            )
            self._producer.init_transactions()
        except OdradekError as error:
            raise GaveUp(str(error)) from error

    def end_producer(self) -> None:
        if self._producer is not None:
            self._producer.close(0)
            self._producer = None

    def begin(self) -> None:
        self._producer.begin_transaction()

    def send(self, partition: int, number: int, transaction: str) -> None:
        def delivered(error: BaseException | None, metadata: RecordMetadata | None) -> None:
            self.sent(partition, number, transaction, None if metadata is None else metadata.offset)

        try:
            self._producer.send(
                self.work.topic, self.value(number), partition=partition, on_delivery=delivered
            )
        except AbortableTransactionError as error:
            self._abort()
            raise Aborted from error
        except OdradekError as error:
            raise GaveUp(str(error)) from error

    def end(self, *, commit: bool) -> None:
        if not commit:
            self._abort()
            return
        while True:
            try:
                self._producer.commit_transaction()
                return
            except DeadlineExceeded:
                continue
            except AbortableTransactionError as error:
                self._abort()
                raise Aborted from error
            except OdradekError as error:
                raise GaveUp(str(error)) from error

    def _abort(self) -> None:
        while True:
            try:
                self._producer.abort_transaction()
                return
            except DeadlineExceeded:
                continue
            except TransactionError as error:
                raise GaveUp(str(error)) from error


class CommittedReader(ConfluentReader):
    """librdkafka with all partitions assigned from the beginning, read_committed."""

    read_committed = True

    def settings(self) -> dict[str, object]:
        return super().settings() | {"isolation.level": "read_committed", "socket.timeout.ms": 3000}


class FinalCommittedReader(FinalReader):
    """Reads everything that is committed once; a transaction that is open keeps it from coming to the end."""

    read_committed = True


PRODUCERS: tuple[type[TransactionalWorker], ...] = (LibrdkafkaTransactions, OurTransactions)
