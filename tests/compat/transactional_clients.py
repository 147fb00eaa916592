"""Transactional producers of several libraries behind one interface."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol

from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from aiokafka.errors import KafkaError as AioError
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from kafka import KafkaProducer
from kafka import TopicPartition as PurePartition
from kafka.consumer.group import ConsumerGroupMetadata
from kafka.errors import KafkaError as PureError
from kafka.structs import OffsetAndMetadata as PureOffset

import odradek
from compat.java_tools import NEWEST, QUICK_JVM, WITH_ZOOKEEPER
from odradek import TransactionError
from odradek.client.errors import BrokerError

PATIENCE_SECONDS = 60
HERE = Path(__file__).parent
JAVA_CLIENT = HERE / "java" / "Transactions.java"
PACKAGES = Path.home() / ".cache" / "peers"


class Refused(Exception):
    """The broker or the library has refused; `text` is what it says."""


class TransactionalProducer(Protocol):
    """What the tests need of a library."""

    name: str

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None: ...
    def begin(self) -> None: ...
    def send(self, topic: str, partition: int, value: bytes) -> None: ...
    def commit_offset(self, group: str, topic: str, offset: int) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class Librdkafka:
    name = "librdkafka"

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._bootstrap = bootstrap
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "log_level": 0,
            }
        )
        self._call(self._producer.init_transactions, PATIENCE_SECONDS)

    def _call(self, function: Any, *given: Any) -> Any:
        try:
            return function(*given)
        except KafkaException as error:
            raise Refused(str(error)) from error

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, partition: int, value: bytes) -> None:
        errors: list[Any] = []
        self._producer.produce(
            topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error)
        )
        self._call(self._producer.flush, PATIENCE_SECONDS)
        (error,) = errors
        if error is not None:
            raise Refused(error.name())

    def commit_offset(self, group: str, topic: str, offset: int) -> None:
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "log_level": 0})
        metadata = consumer.consumer_group_metadata()
        offsets = [ConfluentPartition(topic, 0, offset)]
        self._call(self._producer.send_offsets_to_transaction, offsets, metadata, PATIENCE_SECONDS)
        consumer.close()

    def commit(self) -> None:
        self._call(self._producer.commit_transaction, PATIENCE_SECONDS)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction, PATIENCE_SECONDS)

    def close(self) -> None:
        self._producer.purge()
        with contextlib.suppress(KafkaException):  # raised forever by a producer that was fenced
            self._producer.flush(1)


class Aiokafka:
    name = "aiokafka"

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._runner = asyncio.Runner()

        async def start() -> AIOKafkaProducer:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
            )
            await producer.start()
            return producer

        self._producer = self._run(start())

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return self._runner.run(asyncio.wait_for(work, PATIENCE_SECONDS))
        except AioError as error:
            raise Refused(repr(error)) from error

    def begin(self) -> None:
        self._run(self._producer.begin_transaction())

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._run(self._producer.send_and_wait(topic, value, partition=partition))

    def commit_offset(self, group: str, topic: str, offset: int) -> None:
        self._run(self._producer.send_offsets_to_transaction({AioPartition(topic, 0): offset}, group))

    def commit(self) -> None:
        self._run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._run(self._producer.abort_transaction())

    def close(self) -> None:
        self._runner.run(asyncio.wait_for(self._producer.stop(), PATIENCE_SECONDS))
        self._runner.close()


class KafkaPython:
    name = "kafka-python"

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            max_block_ms=1000 * PATIENCE_SECONDS,
        )
        self._call(self._producer.init_transactions)

    def _call(self, function: Any, *given: Any) -> Any:
        try:
            return function(*given)
        except PureError as error:
            raise Refused(repr(error)) from error

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, partition: int, value: bytes) -> None:
        sent = self._call(lambda: self._producer.send(topic, value, partition=partition))
        self._call(sent.get, PATIENCE_SECONDS)

    def commit_offset(self, group: str, topic: str, offset: int) -> None:
        offsets = {PurePartition(topic, 0): PureOffset(offset, "", -1)}
        metadata = ConsumerGroupMetadata(group, -1, "", None)
        self._call(self._producer.send_offsets_to_transaction, offsets, metadata)

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(timeout=5)


class Ours:
    name = "ours"

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._producer = odradek.Producer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
        )
        self._call(self._producer.init_transactions)

    def _call(self, function: Any, *given: Any) -> Any:
        try:
            return function(*given)
        except (BrokerError, TransactionError) as error:
            raise Refused(repr(error)) from error

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, partition: int, value: bytes) -> None:
        sent = self._call(lambda: self._producer.send(topic, value, partition=partition))
        self._call(sent.result, PATIENCE_SECONDS)

    def commit_offset(self, group: str, topic: str, offset: int) -> None:
        offsets = {odradek.TopicPartition(topic, 0): offset}
        self._call(self._producer.send_offsets_to_transaction, offsets, group)

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close()


KINDS: tuple[type[TransactionalProducer], ...] = (Librdkafka, Aiokafka, KafkaPython, Ours)


class _Lines:
    """A program that gets one call a line and answers each with a line: `ok`, or what was refused."""

    name = ""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._process = subprocess.Popen(
            [*self.program(), bootstrap, transactional_id, str(timeout_ms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._expect_ok()

    def program(self) -> list[str]:
        """The command that starts it."""
        raise NotImplementedError

    def _expect_ok(self) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if line != "ok":
            raise Refused(line)

    def _ask(self, *words: object) -> None:
        assert self._process.stdin is not None
        print(*words, file=self._process.stdin, flush=True)
        self._expect_ok()

    def begin(self) -> None:
        self._ask("begin")

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._ask("send", topic, partition, value.decode())

    def commit_offset(self, group: str, topic: str, offset: int) -> None:
        self._ask("offset", group, topic, offset)

    def commit(self) -> None:
        self._ask("commit")

    def abort(self) -> None:
        self._ask("abort")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class _Java(_Lines):
    """Kafka's own client in a JVM."""

    version = ""

    def program(self) -> list[str]:
        libraries = PACKAGES / f"kafka-{self.version}" / "libs" / "*"
        return ["java", *QUICK_JVM.split(), "-cp", str(libraries), str(JAVA_CLIENT)]


class JavaV2(_Java):
    name, version = "java-4.3.1", NEWEST


class JavaV1(_Java):
    name, version = "java-3.9.2", WITH_ZOOKEEPER


JAVA_KINDS: tuple[type[TransactionalProducer], ...] = (JavaV2, JavaV1)


class FranzGo(_Lines):
    """Built from the module proxy of Go, once on each machine."""

    name, version = "franz-go", "v1.22.2"

    def program(self) -> list[str]:
        source = HERE / "franz_go" / "transactions.go"
        package = PACKAGES / f"franz-go-{self.version}"
        built = package / "transactions"
        if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
            package.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, package / "main.go")
            if not (package / "go.mod").exists():
                _run_in(package, "go", "mod", "init", "transactions")
            _run_in(package, "go", "get", f"github.com/twmb/franz-go@{self.version}")
            _run_in(package, "go", "mod", "tidy")
            _run_in(package, "go", "build", "-o", built.name, ".")
        return [str(built)]


class Kafkajs(_Lines):
    """Installed from npm, once on each machine."""

    name, version = "kafkajs", "2.2.4"

    def program(self) -> list[str]:
        package = PACKAGES / f"kafkajs-{self.version}"
        if not (package / "node_modules" / "kafkajs").exists():
            package.mkdir(parents=True, exist_ok=True)
            _run_in(package, "npm", "install", "--prefix", str(package), f"kafkajs@{self.version}")
        shutil.copy(HERE / "kafkajs" / "transactions.js", package)
        return ["node", str(package / "transactions.js")]


def _run_in(directory: Path, *command: str) -> None:
    subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=300)


# Their languages come with the system or not at all (docs/compatibility.md).
FOREIGN_KINDS: tuple[type[TransactionalProducer], ...] = tuple(
    kind for kind, program in ((FranzGo, "go"), (Kafkajs, "npm")) if shutil.which(program)
)
