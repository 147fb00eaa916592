"""kill -9 while topics are made, grown and deleted: what was answered is so afterwards."""

from __future__ import annotations

import itertools
import os
import threading
import time
from pathlib import Path
from random import Random

import pytest

from broker.wire import ClosedByBroker, WireClient, a_batch, a_produce, a_topic, the_row
from faults.broker_process import BrokerProcess, wait_until
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import CreatePartitionsRequest, DeleteTopicsRequest, MetadataRequest

CYCLES = int(os.environ.get("ODRADEK_KILL_CYCLES", "5"))


class Administrator:
    """A thread that makes topics, grows and deletes some, and keeps book of what it was answered."""

    def __init__(self, address: str, seed: int) -> None:
        self.address = address
        self.made: dict[str, int] = {}
        self.deleted: set[str] = set()
        self.unsure: set[str] = set()
        self.failure: BaseException | None = None
        self._random = Random(seed)
        self._numbers = itertools.count()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run_and_remember)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(60)
        if self.failure is not None:
            raise self.failure

    def _run_and_remember(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    with WireClient(self.address) as client:
                        while not self._stopping.is_set():
                            self._act(client)
                except (ConnectionError, ClosedByBroker):
                    time.sleep(0.01)
        except BaseException as error:
            self.failure = error

    def _act(self, client: WireClient) -> None:
        known = [name for name in self.made if name not in self.unsure]
        act = self._random.choice((self._create, self._create, self._grow, self._delete))
        if len(known) < 3:
            act = self._create
        name = f"topic-{next(self._numbers)}" if act == self._create else self._random.choice(known)
        # Until it is answered nobody knows.
        self.unsure.add(name)
        if act(client, name):
            self.unsure.discard(name)

    def _create(self, client: WireClient, name: str) -> bool:
        (row,) = client.ask(ApiKey.CREATE_TOPICS, 7, a_topic(name, 2)).topics
        if row.error_code:
            return False
        self.made[name] = 2
        return True

    def _grow(self, client: WireClient, name: str) -> bool:
        count = self.made[name] + 1
        asked = CreatePartitionsRequest.Topics(name=name, count=count, assignments=None)
        request = CreatePartitionsRequest(topics=[asked], timeout_ms=30_000)
        (row,) = client.ask(ApiKey.CREATE_PARTITIONS, 3, request).results
        if row.error_code:
            return False
        self.made[name] = count
        return True

    def _delete(self, client: WireClient, name: str) -> bool:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000)
        (row,) = client.ask(ApiKey.DELETE_TOPICS, 5, request).responses
        if row.error_code:
            return False
        del self.made[name]
        self.deleted.add(name)
        return True


@pytest.mark.slow
def test_topics_are_as_was_answered_after_kill_after_kill(tmp_path):
    random = Random(CYCLES)
    with BrokerProcess(tmp_path) as broker:
        administrator = Administrator(broker.address, CYCLES)
        administrator.start()
        for _ in range(CYCLES):
            before = len(administrator.made) + len(administrator.deleted)
            wait_until(
                lambda: len(administrator.made) + len(administrator.deleted) != before,  # noqa: B023
                "the administrator is served",
            )
            time.sleep(random.uniform(0.02, 0.5))
            broker.kill()
            broker.start()
        administrator.stop()
        wait_until(lambda: leaderless(broker.address) == [], "every partition has a leader")
        assert_as_answered(broker, administrator)
        assert broker.terminate() == 0
    assert "Unexpected error in" not in broker.log()
    assert "Traceback" not in broker.log()
    assert "stray" not in " ".join(path.name for path in broker.data.iterdir())


def topics_of(address: str) -> dict[str, list[int]]:
    """Per topic the leaders of its partitions."""
    with WireClient(address) as client:
        metadata = client.ask(ApiKey.METADATA, 9, MetadataRequest(topics=None))
    return {topic.name: [part.leader_id for part in topic.partitions] for topic in metadata.topics}


def leaderless(address: str) -> list[str]:
    return [name for name, leaders in topics_of(address).items() if -1 in leaders]


def assert_as_answered(broker: BrokerProcess, administrator: Administrator) -> None:
    found = {name: len(leaders) for name, leaders in topics_of(broker.address).items()}
    sure = {name: count for name, count in administrator.made.items() if name not in administrator.unsure}
    assert {name: found.get(name) for name in sure} == sure
    assert not administrator.deleted & set(found)
    assert set(found) <= set(sure) | administrator.unsure
    with WireClient(broker.address) as client:
        for name, count in found.items():
            for partition in range(count):
                row = the_row(client.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"x"), name, partition)))
                assert row.error_code == ErrorCode.NONE, f"{name}-{partition}"
    assert live_directories(broker.data) == {
        f"{name}-{partition}" for name, count in found.items() for partition in range(count)
    }


def live_directories(data: Path) -> set[str]:
    return {
        path.name
        for path in data.iterdir()
        if path.is_dir() and not path.name.endswith(("-delete", "-sessions"))
    }
