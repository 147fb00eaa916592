"""Clients follow the finalized `transaction.version`; a change of it, or another client, tears nothing."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from broker.wire import WireClient, a_topic, set_transaction_version
from compat.committed_readers import librdkafka
from compat.transactional_clients import JavaV2, Librdkafka, Ours, Refused, TransactionalProducer
from odradek import Admin
from odradek.client.admin.transactions import TransactionDescription
from odradek.protocol.api_key import ApiKey
from odradek.testing import Cluster

pytestmark = pytest.mark.slow

PARTITIONS = range(3)
PATIENCE_SECONDS = 60
JAVA = pytest.param(JavaV2, id=JavaV2.name, marks=pytest.mark.java)
LATER = [
    pytest.param(JavaV2, id=JavaV2.name, marks=[pytest.mark.java, pytest.mark.long]),
    pytest.param(Librdkafka, id=Librdkafka.name, marks=pytest.mark.long),
]
OURS = pytest.param(Ours, id=Ours.name)
NewProducer = Callable[[type[TransactionalProducer]], TransactionalProducer]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster({"transaction.state.log.num.partitions": 3, "offsets.topic.num.partitions": 3}) as running:
        yield running


@pytest.fixture
def topic(cluster: Cluster) -> str:
    name = f"versions-{secrets.token_hex(4)}"
    with WireClient(cluster.bootstrap) as client:
        client.ask(ApiKey.CREATE_TOPICS, 7, a_topic(name, len(PARTITIONS)))
    return name


@pytest.fixture
def new_producer(cluster: Cluster, topic: str) -> Iterator[NewProducer]:
    """Makes producers of one transactional id, which are closed after the test."""
    made: list[TransactionalProducer] = []

    def make(kind: type[TransactionalProducer]) -> TransactionalProducer:
        made.append(kind(cluster.bootstrap, topic))
        return made[-1]

    yield make
    for producer in made:
        producer.close()


def described(cluster: Cluster, name: str) -> TransactionDescription:
    """The transactional id once nothing of it is undecided."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        while True:
            found = admin.describe_transactions([name])[name]
            if isinstance(found, TransactionDescription) and not found.state.startswith("Prepare"):
                return found
            assert time.monotonic() < deadline, found
            time.sleep(0.02)


def write(producer: TransactionalProducer, topic: str, value: bytes, *partitions: int) -> None:
    for partition in partitions or PARTITIONS:
        producer.send(topic, partition, value)


def committed(cluster: Cluster, topic: str, expected: list[str]) -> bool:
    """Whether exactly these values, in this order, are read in each partition."""
    count = len(PARTITIONS) * len(expected)
    found = librdkafka(cluster.bootstrap, topic, len(PARTITIONS), count)
    assert found == [expected] * len(PARTITIONS)
    return True


def group_offset(cluster: Cluster, group: str) -> list[int]:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        return [one.offset for one in admin.list_group_offsets(group).values()]


@pytest.mark.parametrize("kind", [OURS, JAVA])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_client_uses_the_version_that_is_finalized(
    cluster: Cluster, topic: str, new_producer: NewProducer, kind: type[TransactionalProducer], level: int
) -> None:
    set_transaction_version(cluster.bootstrap, level)
    producer = new_producer(kind)
    first = described(cluster, topic).producer_epoch
    for number, is_commit in enumerate((True, False, True)):
        producer.begin()
        write(producer, topic, b"%d" % number)
        if is_commit:
            producer.commit()
        else:
            producer.abort()
    # Only v2 raises the epoch at each end.
    assert described(cluster, topic).producer_epoch == first + (3 if level == 2 else 0)
    assert committed(cluster, topic, ["0", "2"])


@pytest.mark.parametrize("kind", [OURS, *LATER])
@pytest.mark.parametrize("restarts", [False, True], ids=["connected", "restarted"])
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2), (0, 2), (2, 0)])
def test_a_change_while_a_transaction_is_open_does_not_tear_it(
    cluster: Cluster,
    topic: str,
    new_producer: NewProducer,
    kind: type[TransactionalProducer],
    before: int,
    after: int,
    restarts: bool,
) -> None:
    """With a restart the records of one version are read in the other, and clients connect again."""
    set_transaction_version(cluster.bootstrap, before)
    producer = new_producer(kind)
    producer.begin()
    write(producer, topic, b"across", 0, 1)
    set_transaction_version(cluster.bootstrap, after)
    if restarts:
        cluster.restart()
    write(producer, topic, b"across", 2)
    producer.commit_offset(topic, topic, 7)
    producer.commit()

    for value, end in ((b"aborted", producer.abort), (b"next", producer.commit)):
        producer.begin()
        write(producer, topic, value)
        end()
    assert described(cluster, topic).state == "CompleteCommit"
    assert committed(cluster, topic, ["across", "next"])
    assert group_offset(cluster, topic) == [7]


@pytest.mark.parametrize("v2", [OURS, LATER[0]])
def test_clients_of_v1_and_v2_in_turn_on_one_id_fence_each_other_and_tear_nothing(
    cluster: Cluster, topic: str, new_producer: NewProducer, v2: type[TransactionalProducer]
) -> None:
    set_transaction_version(cluster.bootstrap, 2)
    expected = []
    earlier: TransactionalProducer | None = None
    for number, kind in enumerate((Librdkafka, v2, Librdkafka, v2)):
        producer = new_producer(kind)
        if earlier is not None:
            with pytest.raises(Refused):
                earlier.commit()
        for what in ("committed", "aborted", "committed"):
            producer.begin()
            write(producer, topic, f"{what}-{number}".encode())
            if what == "committed":
                producer.commit()
                expected.append(f"{what}-{number}")
            else:
                producer.abort()
        producer.begin()
        write(producer, topic, f"open-{number}".encode())
        earlier = producer
    earlier.abort()
    assert described(cluster, topic).state == "CompleteAbort"
    assert committed(cluster, topic, expected)


def test_programs_of_v1_and_v2_that_use_one_id_at_the_same_time_tear_nothing(
    cluster: Cluster, topic: str
) -> None:
    set_transaction_version(cluster.bootstrap, 2)

    def run_program(kind: type[TransactionalProducer]) -> int:
        done = 0
        for _ in range(4):
            try:
                producer = kind(cluster.bootstrap, topic)
            except Refused:
                continue
            try:
                for _ in range(3):
                    producer.begin()
                    write(producer, topic, b"x")
                    producer.commit()
                    done += 1
            except Refused:
                pass
            finally:
                producer.close()
        return done

    with ThreadPoolExecutor(2) as pool:
        done = sum(pool.map(run_program, (Librdkafka, Ours)))
    Ours(cluster.bootstrap, topic).close()  # aborts what the last one has left open
    last = Ours(cluster.bootstrap, f"last-{topic}")
    last.begin()
    write(last, topic, b"last")
    last.commit()
    last.close()
    seen = librdkafka(cluster.bootstrap, topic, len(PARTITIONS), len(PARTITIONS) * (done + 1))
    assert seen == [seen[0]] * len(PARTITIONS)
    assert done > 0
