"""What goes wrong around a cluster: damaged znodes, wrong ids, mixed-up stores, clocks apart.

There is a clear message, the rest keeps running, and nothing is deleted.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from odradek.broker.server import BrokerServer
from odradek.cluster.membership.membership import BrokerIdInUse
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import OdradekError
from odradek.coordination import paths
from odradek.coordination.errors import NodeExists
from odradek.coordination.store import Store
from odradek.coordination.urls import open_store
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import AlterPartitionReassignmentsRequest, CreateTopicsRequest, FetchRequest

from .on_this_loop import run, until
from .together import Brokers, brokers_together
from .wire import a_batch, a_fetch, a_produce, the_row

DAMAGE = [
    b"",
    b"no json",
    b"[]",
    b"null",
    b'{"version":1,"partitions":3}',
    b'{"of":"another system"}',
    b"\xff",
]
BY_OTHERS = [
    paths.REASSIGN_PARTITIONS,
    paths.PREFERRED_REPLICA_ELECTION,
    f"{paths.TOPICS}/of-another-system",
    f"{paths.BROKER_IDS}/77",
    f"{paths.BROKER_IDS}/not-a-number",
    f"{paths.ISR_CHANGE_PREFIX}0000000077",
    f"{paths.LOG_DIR_EVENT_PREFIX}0000000077",
    f"{paths.CONFIG_CHANGE_PREFIX}0000000077",
    f"{paths.CONFIG}/topics/of-another-system",
    f"{paths.DELETE_TOPICS}/that-never-was",
]


async def a_session(directory: Path) -> Store:
    return await open_store(f"sqlite:{directory}/coordination.db?synchronous=off")


async def produce(brokers: Brokers, topic: str, value: bytes, acks: int = -1) -> int:
    """To the leader of partition 0, again while it is about to lead; the error code."""
    request = a_produce(a_batch(value), topic, acks=acks)
    while True:
        answer = await brokers.ask(brokers.leader(topic), ApiKey.PRODUCE, 9, request)
        code = int(the_row(answer).error_code)
        if code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR):
            return code


async def put(store: Store, path: str, payload: bytes) -> None:
    try:
        await store.create(path, payload)
    except NodeExists:
        await store.set(path, payload)


@pytest.mark.parametrize("damage", DAMAGE, ids=repr)
def test_foreign_or_damaged_znodes_are_named_and_hurt_nothing_else(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 2) as brokers:
            await brokers.create_topic("orders", {0: [1, 2]})
            assert await produce(brokers, "orders", b"before") == ErrorCode.NONE
            store = await a_session(tmp_path)
            for path in BY_OTHERS:
                await put(store, path, damage)

            # The controller handles all of it before this.
            await brokers.create_topic("later", {0: [2, 1]})
            assert await produce(brokers, "later", b"after") == ErrorCode.NONE
            assert await produce(brokers, "orders", b"after") == ErrorCode.NONE

            # Another controller reads it all again.
            await brokers.stop(1)
            await until(lambda: brokers.running[2].node.controller.is_active)
            await until(lambda: brokers.leader("orders") == 2)
            assert await produce(brokers, "orders", b"at the end") == ErrorCode.NONE
            assert await store.get(f"{paths.TOPICS}/of-another-system")
            await store.close()

    run(main)
    assert not [record for record in caplog.records if record.exc_info], caplog.text
    for broker in ("broker-1", "broker-2"):
        kept = {path.name for path in (tmp_path / broker).iterdir() if path.is_dir()}
        assert {"orders-0", "later-0"} <= kept


def test_a_damaged_state_of_a_partition_keeps_only_that_one_offline(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 2) as brokers:
            await brokers.create_topic("orders", {0: [2, 1]})
            await brokers.create_topic("others", {0: [2, 1]})
            store = await a_session(tmp_path)
            await store.set(f"{paths.TOPICS}/orders/partitions/0/state", b"no json")
            await brokers.stop(1)
            await until(lambda: brokers.running[2].node.controller.is_active)

            assert await produce(brokers, "others", b"goes on", acks=1) == ErrorCode.NONE
            assert (tmp_path / "broker-2" / "orders-0").is_dir()
            await store.close()

    run(main)
    assert "the state of orders-0 cannot be read" in caplog.text


def test_a_damaged_topic_keeps_its_records_and_is_served_again_when_it_is_repaired(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 3) as brokers:
            await brokers.create_topic("orders", {0: [1, 2, 3]})
            await brokers.create_topic("others", {0: [1, 2, 3]})
            assert await produce(brokers, "orders", b"before") == ErrorCode.NONE
            store = await a_session(tmp_path)
            intact = (await store.get(f"{paths.TOPICS}/orders")).payload
            await store.set(f"{paths.TOPICS}/orders", b"{}")
            await brokers.stop(1)
            await until(lambda: any(one.node.controller.is_active for one in brokers.running.values()))
            await until(lambda: brokers.leader("others") == 2)
            assert await produce(brokers, "others", b"goes on") == ErrorCode.NONE
            assert brokers.leader("orders") == 2
            # Not acks=all: broker 1 may have fetched once more, and who is in sync cannot be changed now.
            assert await produce(brokers, "orders", b"goes on", acks=1) == ErrorCode.NONE
            await brokers.start(1)

            await store.set(f"{paths.TOPICS}/orders", intact)
            await until(lambda: len(isr_of(brokers, "orders", seen_by=1)) == 3)
            assert await produce(brokers, "orders", b"after") == ErrorCode.NONE
            for server in brokers.running.values():
                assert server.services.replicas.get("orders", 0).log.log_end_offset == 3
            await store.close()

    run(main)
    assert "topic orders in the store is ignored" in caplog.text
    assert not list(tmp_path.glob("broker-*/*-stray"))


def test_a_reassignment_of_a_damaged_topic_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 2) as brokers:
            await brokers.create_topic("orders", {0: [1]})
            epoch = brokers.running[1].node.controller.context.epoch  # type: ignore[union-attr]
            store = await a_session(tmp_path)
            await store.set(f"{paths.TOPICS}/orders", b"{}")
            row = AlterPartitionReassignmentsRequest.Topics.Partitions(partition_index=0, replicas=[2])
            topic = AlterPartitionReassignmentsRequest.Topics(name="orders", partitions=[row])
            request = AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=20_000)
            answer = await brokers.ask(1, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)
            (refused,) = answer.responses[0].partitions
            assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert "is damaged" in refused.error_message
            assert brokers.running[1].node.controller.context.epoch == epoch  # type: ignore[union-attr]
            assert await produce(brokers, "orders", b"goes on") == ErrorCode.NONE
            await store.close()

    run(main)


def test_a_state_that_is_damaged_while_its_leader_dies_loses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 2, "controlled.shutdown.enable=false") as brokers:
            await brokers.create_topic("orders", {0: [2, 1]})
            assert await produce(brokers, "orders", b"before") == ErrorCode.NONE
            store = await a_session(tmp_path)
            path = f"{paths.TOPICS}/orders/partitions/0/state"
            intact = (await store.get(path)).payload
            await store.set(path, b"no json")
            await brokers.stop(2)
            await until(lambda: 2 not in brokers.running[1].services.image.brokers)
            await brokers.start(2)
            context = brokers.running[1].node.controller.context
            assert context is not None
            assert len(context.unreadable) == 1
            assert not list(tmp_path.glob("broker-*/*-stray"))

            await store.set(path, intact)
            await until(lambda: len(isr_of(brokers, "orders", seen_by=1)) == 2)
            assert await produce(brokers, "orders", b"after") == ErrorCode.NONE
            for server in brokers.running.values():
                assert server.services.replicas.get("orders", 0).log.log_end_offset == 2
            await store.close()

    run(main)
    assert "the state of orders-0 cannot be read" in caplog.text


def isr_of(brokers: Brokers, topic: str, *, seen_by: int) -> list[int]:
    known = brokers.running[seen_by].services.image.partition(topic, 0)
    return [] if known is None or known.leader < 0 else list(known.isr)


def test_a_replica_on_a_disk_that_is_offline_at_the_start_waits_for_the_disk(tmp_path: Path) -> None:
    disks = [tmp_path / "disk-1", tmp_path / "disk-2"]
    on_two_disks = f"log.dirs={disks[0]},{disks[1]}"

    async def main() -> None:
        brokers = Brokers(tmp_path)
        await brokers.start(1, on_two_disks)
        await brokers.start(2)
        await brokers.create_topic("orders", {0: [1, 2]})
        await brokers.stop(2)
        assert await produce(brokers, "orders", b"only on one disk") == ErrorCode.NONE
        await brokers.stop(1)

        (disk,) = [one for one in disks if (one / "orders-0").is_dir()]
        lock = disk / ".lock"
        lock.unlink()
        lock.mkdir()  # the directory cannot be locked
        await brokers.start(1, on_two_disks)
        await until(lambda: brokers.leader("orders") == -1)
        await brokers.start(2)
        assert brokers.leader("orders") == -1
        assert [one for one in disks if (one / "orders-0").is_dir()] == [disk]
        await brokers.stop(1)

        lock.rmdir()
        await brokers.start(1, on_two_disks)
        await until(lambda: brokers.leader("orders") == 1)
        assert brokers.running[1].services.replicas.get("orders", 0).log.log_end_offset == 1
        for broker_id in (2, 1):
            await brokers.stop(broker_id)

    run(main)


def test_more_replicas_than_brokers_are_refused_and_say_how_many_there_are(tmp_path: Path) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 2) as brokers:
            topic = CreateTopicsRequest.Topics(name="orders", num_partitions=1, replication_factor=3)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=20_000)
            answer = await brokers.ask(1, ApiKey.CREATE_TOPICS, 7, request)
            (row,) = answer.topics
            assert row.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
            assert "3" in row.error_message
            assert "2" in row.error_message
            await brokers.create_topic("orders", {0: [1, 2]})

    run(main)


def test_a_second_broker_under_a_live_id_is_refused_and_the_first_continues(tmp_path: Path) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 2) as brokers:
            await brokers.create_topic("orders", {0: [2, 1]})
            epoch = brokers.running[2].node.broker_epoch
            twin = brokers.make(2, f"log.dirs={tmp_path / 'twin'}", "zookeeper.session.timeout.ms=1000")
            (tmp_path / "twin").mkdir()
            with pytest.raises(BrokerIdInUse, match="broker id 2 is taken by a live broker"):
                await twin.start()
            assert brokers.running[2].node.broker_epoch == epoch
            assert await produce(brokers, "orders", b"goes on") == ErrorCode.NONE

    run(main)


def test_a_broker_of_another_cluster_is_refused_and_keeps_its_logs(tmp_path: Path) -> None:
    async def main() -> None:
        for name in ("one", "other"):
            (tmp_path / name).mkdir()
        async with brokers_together(tmp_path / "one", 1) as brokers:
            await brokers.create_topic("orders", {0: [1]})
        log_dir = tmp_path / "one" / "broker-1"
        before = {path.name for path in log_dir.iterdir()}
        async with brokers_together(tmp_path / "other", 2) as others:
            await others.create_topic("theirs", {0: [1, 2]})
            other_cluster = others.make(3, f"log.dirs={log_dir}", "broker.id=1")
            with pytest.raises(OdradekError, match="cluster"):
                await other_cluster.start()
            assert {path.name for path in log_dir.iterdir()} == before
            assert await produce(others, "theirs", b"goes on") == ErrorCode.NONE

    run(main)


def test_a_fetch_as_a_replica_that_is_none_gets_no_record_and_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 2) as brokers:
            await brokers.create_topic("orders", {0: [1, 2]})
            assert await produce(brokers, "orders", b"x") == ErrorCode.NONE
            topic_id = brokers.running[1].services.image.topics["orders"].topic_id
            for replica_id in (3, 77, 77):
                request = a_fetch("orders")
                request.topics[0].topic = ""
                request.topics[0].topic_id = topic_id
                request.replica_state = FetchRequest.ReplicaState(replica_id=replica_id, replica_epoch=1)
                answer = await brokers.ask(1, ApiKey.FETCH, 17, request)
                row = answer.responses[0].partitions[0]
                assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                assert not row.records
            partition = brokers.running[1].services.replicas.get("orders", 0)
            assert set(partition.followers) == {2}
            assert await produce(brokers, "orders", b"goes on") == ErrorCode.NONE

    run(main)
    assert [one.getMessage() for one in caplog.records if "a fetch of broker" in one.getMessage()] == [
        f"a fetch of broker {replica_id} from orders-0 is refused: the replicas of leader epoch 0 are [1, 2]"
        for replica_id in (3, 77)
    ]


class ShiftedClock:
    """So far before or after the clocks of the others."""

    def __init__(self, ahead_ms: int) -> None:
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._ahead_ms


def test_clocks_30_s_apart_cost_neither_members_nor_records(tmp_path: Path) -> None:
    class Shifted(Brokers):
        def make(self, broker_id: int, *settings: str) -> BrokerServer:
            config = super().make(broker_id, *settings).config
            clock = ShiftedClock({1: -30_000, 2: 0, 3: 30_000}[broker_id])
            return BrokerServer(config, clock=clock, on_fatal=self.fatal.append)

    async def main() -> None:
        async with brokers_together(tmp_path, 3, "replica.lag.time.max.ms=5000", made_by=Shifted) as brokers:
            await brokers.create_topic("orders", {0: [3, 1, 2]})
            for number in range(20):
                assert await produce(brokers, "orders", b"%d" % number) == ErrorCode.NONE
            for server in brokers.running.values():
                server.services.replicas.shrink_isrs(server.services.clock.now_ms())
            leader = brokers.running[3].services.replicas.get("orders", 0)
            assert set(leader.isr) == {1, 2, 3}
            await brokers.stop(3)
            await until(lambda: brokers.leader("orders") == 1)
            assert await produce(brokers, "orders", b"by the next leader") == ErrorCode.NONE
            assert brokers.running[1].services.replicas.get("orders", 0).log.high_watermark == 21

    run(main)
