"""The controller over a store in memory, with brokers that handle its requests."""

from __future__ import annotations

import asyncio

import pytest

from cluster.simulated import SimulatedBroker, SimulatedCluster
from cluster.virtual_time import run_in_virtual_time
from odradek.cluster.controller.active_controller import ActiveController
from odradek.cluster.controller.fenced_store import ControllerMoved, FencedStore
from odradek.cluster.controller.state.context import ReplicaState
from odradek.cluster.controller.state.election import Election
from odradek.cluster.log_dir_events import notify_log_dir_event
from odradek.cluster.topics.new_topics import NewTopic
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.coordination import paths
from odradek.coordination.errors import ConnectionLoss
from odradek.coordination.payloads import (
    ControllerRegistration,
    PartitionStateNode,
    TopicAssignment,
    encode_partitions,
)
from odradek.coordination.store import Create
from odradek.protocol.messages import (
    AlterPartitionRequest,
    ControlledShutdownRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)

T0 = TopicPartition("t", 0)


async def state_of(cluster: SimulatedCluster, partition: TopicPartition = T0) -> PartitionStateNode:
    store = cluster.live()[0].store
    return PartitionStateNode.decode((await store.get(paths.partition_state(partition))).payload)


def controller_of(cluster: SimulatedCluster) -> SimulatedBroker:
    (controller,) = cluster.active_controllers()
    return controller


async def a_cluster(count: int, *topics: NewTopic) -> SimulatedCluster:
    cluster = await SimulatedCluster.start(count)
    for topic in topics:
        await cluster.admin().create_topic(topic)
    await cluster.settle()
    return cluster


def refusing(request: LeaderAndIsrRequest) -> list[LeaderAndIsrResponse.Topics]:
    """What a broker answers whose disk takes nothing."""
    return [
        LeaderAndIsrResponse.Topics(
            topic_id=topic.topic_id,
            partition_errors=[
                LeaderAndIsrResponse.Topics.PartitionErrors(
                    partition_index=reported.partition_index, error_code=ErrorCode.KAFKA_STORAGE_ERROR
                )
                for reported in topic.partition_states
            ],
        )
        for topic in request.topic_states
    ]


@pytest.mark.parametrize("count", [1, 3])
def test_the_first_broker_becomes_controller_and_says_so_in_the_store(count):
    async def scenario() -> None:
        cluster = await a_cluster(count)
        store = cluster.live()[0].store
        node = await store.get(paths.CONTROLLER)
        assert ControllerRegistration.decode(node.payload).broker_id == 0
        assert node.stat.ephemeral_owner == cluster.brokers[0].store.session_id
        assert (await store.get(paths.CONTROLLER_EPOCH)).payload == b"1"
        assert [broker.image.controller_id for broker in cluster.live()] == [0] * count
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_one_broker_serves_a_new_topic_at_once():
    async def scenario() -> None:
        cluster = await a_cluster(1, NewTopic("t", 3, 1))
        broker = cluster.brokers[0]
        assert sorted(broker.hosted) == [TopicPartition("t", index) for index in range(3)]
        assert [one.state.is_new for one in broker.hosted.values()] == [True] * 3
        assert broker.image.partition("t", 2).leader == 0
        assert await state_of(cluster) == PartitionStateNode(0, 0, (0,), 1)
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_lost_leader_is_replaced_by_a_replica_in_sync_and_every_broker_is_notified():
    async def scenario() -> None:
        cluster = await a_cluster(3, NewTopic("t", assignment={0: [2, 1]}))
        await cluster.brokers[2].stop()
        await cluster.settle()

        assert await state_of(cluster) == PartitionStateNode(1, 1, (1,), 1)
        for broker in cluster.live():
            reported = broker.image.partition("t", 0)
            assert (reported.leader, reported.isr, reported.offline_replicas) == (1, (1,), (2,))
            assert sorted(broker.image.brokers) == [0, 1]
        assert cluster.brokers[1].hosted[T0].state.leader == 1

        await cluster.brokers[1].stop()
        await cluster.settle()
        # The last in sync stays in the ISR: only it has every record.
        assert await state_of(cluster) == PartitionStateNode(-1, 2, (1,), 1)

        await cluster.brokers[2].start()
        await cluster.settle()
        assert (await state_of(cluster)).leader == -1

        await cluster.brokers[1].start()
        await cluster.settle()
        assert (await state_of(cluster)).leader == 1
        assert cluster.brokers[2].hosted[T0].state.leader == 1
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_new_controller_takes_over_with_a_higher_epoch_and_all_that_was():
    async def scenario() -> None:
        cluster = await a_cluster(3, NewTopic("t", assignment={0: [0, 1, 2]}))
        await cluster.brokers[0].stop()
        await cluster.settle()

        successor = controller_of(cluster)
        assert successor.node.controller.context.epoch == 2
        assert await state_of(cluster) == PartitionStateNode(1, 1, (1, 2), 2)
        assert {broker.fence.controller_epoch for broker in cluster.live()} == {2}
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_deposed_controller_can_write_nothing_and_resigns():
    async def scenario() -> None:
        cluster = await a_cluster(2, NewTopic("t", assignment={0: [0, 1]}))
        old = controller_of(cluster)
        zombie = FencedStore(old.store, old.node.controller.context.epoch_version)

        await cluster.brokers[1].store.delete(paths.CONTROLLER)
        await cluster.settle()

        with pytest.raises(ControllerMoved):
            await zombie.write([Create("/isr_change_notification/zombie")])
        assert await old.store.exists("/isr_change_notification/zombie") is None
        assert controller_of(cluster).node.controller.context.epoch == 2
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_damaged_controller_node_leads_to_a_new_election():
    async def scenario() -> None:
        cluster = await a_cluster(2)
        intruder = cluster.ensemble.open_session()
        await intruder.delete(paths.CONTROLLER)
        await intruder.create(paths.CONTROLLER, b"no json")
        await cluster.settle()
        registered = (await intruder.get(paths.CONTROLLER)).payload
        assert ControllerRegistration.decode(registered).broker_id == controller_of(cluster).broker_id
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_suspended_controller_does_nothing_until_it_is_sure_again():
    async def scenario() -> None:
        cluster = await a_cluster(2)
        old = controller_of(cluster)
        old.store.suspend()
        await cluster.brokers[1].store.create(
            paths.topic("t"), TopicAssignment.decode(b'{"version":1,"partitions":{"0":[0,1]}}').encode()
        )
        await cluster.settle(2.0)
        assert not any("t" in broker.image.topics for broker in cluster.live())

        old.store.resume()
        await cluster.settle()
        assert controller_of(cluster) is old
        assert old.node.controller.context.epoch == 1
        assert all("t" in broker.image.topics for broker in cluster.live())
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_controller_without_contact_for_two_thirds_of_its_session_resigns():
    async def scenario() -> None:
        cluster = await a_cluster(2)
        old = controller_of(cluster)
        old.store.suspend()
        await asyncio.sleep(3.9)
        assert old.node.controller.is_active
        await asyncio.sleep(0.2)
        assert not old.node.controller.is_active

        old.store.resume()
        await cluster.settle()
        assert controller_of(cluster).node.controller.context.epoch == 2
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_the_time_to_resign_counts_from_the_last_contact_and_not_from_when_it_was_noticed():
    async def scenario() -> None:
        cluster = await a_cluster(2)
        old = controller_of(cluster)
        old.store.lose_contact()
        await asyncio.sleep(3.0)
        old.store.suspend()
        await asyncio.sleep(0.9)
        assert old.node.controller.is_active
        await asyncio.sleep(0.2)
        assert not old.node.controller.is_active

        old.store.resume()
        await cluster.settle()
        assert controller_of(cluster).node.controller.context.epoch == 2
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_controller_resigns_though_its_store_has_noticed_nothing():
    async def scenario() -> None:
        cluster = await a_cluster(2)
        old = controller_of(cluster)
        old.store.lose_contact()
        await asyncio.sleep(3.9)
        assert old.node.controller.is_active
        await asyncio.sleep(0.2)
        assert not old.node.controller.is_active

        old.store.resume()
        await cluster.settle()
        assert controller_of(cluster).node.controller.context.epoch == 2
        await cluster.stop()

    run_in_virtual_time(scenario())


@pytest.mark.parametrize("error", [ControllerMoved("by another"), ConnectionLoss("lost")], ids=repr)
def test_a_controller_that_cannot_begin_takes_part_in_the_next_election(monkeypatch, error):
    begin, failures = ActiveController.begin, [error]

    async def begin_or_fail(self: ActiveController) -> None:
        if failures:
            raise failures.pop()
        await begin(self)

    monkeypatch.setattr(ActiveController, "begin", begin_or_fail)

    async def scenario() -> None:
        cluster = await a_cluster(1, NewTopic("t", 1, 1))
        assert controller_of(cluster) is cluster.brokers[0]
        assert cluster.brokers[0].image.partition("t", 0).leader == 0
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_an_expired_broker_registers_again_with_a_new_epoch():
    async def scenario() -> None:
        cluster = await a_cluster(2, NewTopic("t", assignment={0: [1, 0]}))
        broker = cluster.brokers[1]
        first_epoch = broker.node.broker_epoch

        broker.store.expire()
        await cluster.settle()

        assert broker.node.broker_epoch > first_epoch
        assert broker.fence.broker_epoch == broker.node.broker_epoch
        assert controller_of(cluster).node.controller.context.broker_epoch(1) == broker.node.broker_epoch
        assert broker.image.brokers[1].epoch == broker.node.broker_epoch
        assert (await state_of(cluster)).leader == 0
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_broker_that_bounced_unseen_gets_a_full_request_after_its_restart():
    async def scenario() -> None:
        cluster = await a_cluster(2, NewTopic("t", assignment={0: [1, 0]}))
        controller, bounced = cluster.brokers[0], cluster.brokers[1]
        controller.store.suspend()
        await bounced.stop()
        await bounced.start()
        controller.store.resume()
        await cluster.settle()

        assert controller.node.controller.context.epoch == 1
        assert controller.node.controller.context.broker_epoch(1) == bounced.node.broker_epoch
        assert bounced.image.partition("t", 0).leader == 0
        assert await state_of(cluster) == PartitionStateNode(0, 1, (0,), 1)
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_controller_that_restarted_unnoticed_leads_nothing_by_its_old_registration():
    async def scenario() -> None:
        cluster = await a_cluster(
            3, NewTopic("t", assignment={0: [0, 1, 2]}), NewTopic("u", assignment={0: [0]})
        )
        old = controller_of(cluster)
        assert old.broker_id == 0
        others = [broker for broker in cluster.live() if broker is not old]
        for broker in others:
            broker.store.suspend()
        await old.stop()
        await old.start()
        for broker in others:
            broker.store.resume()
        await cluster.settle()

        state = await state_of(cluster)
        assert (state.leader, state.isr) == (1, (1, 2))
        assert all(broker.image.partition("t", 0).leader == 1 for broker in cluster.live())
        alone = await state_of(cluster, TopicPartition("u", 0))
        assert (alone.leader, alone.isr) == (0, (0,))
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_restarted_replica_is_not_given_up_for_one_that_does_not_answer():
    async def scenario() -> None:
        cluster = await a_cluster(3, NewTopic("t", assignment={0: [0, 1, 2]}))
        old = controller_of(cluster)
        dead = [broker for broker in cluster.live() if broker is not old]
        for broker in dead:  # their sessions have not expired yet
            broker.store.suspend()
            broker.is_alive = False
        await old.stop()
        await old.start()
        await cluster.settle(10)

        state = await state_of(cluster)
        assert (state.leader, state.isr) == (0, (0, 1, 2))
        for broker in dead:
            broker.store.expire()
        await cluster.settle(10)
        state = await state_of(cluster)
        assert (state.leader, state.isr) == (0, (0,))
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_broker_that_dies_while_it_deletes_halts_the_deletion_until_it_is_back():
    async def scenario() -> None:
        cluster = await a_cluster(2, NewTopic("t", assignment={0: [1, 0]}))
        cluster.loss = 1.0  # broker 1 receives nothing more
        await cluster.admin().delete_topic("t")
        await cluster.settle()
        context = controller_of(cluster).node.controller.context
        assert (context.deletions.started, context.deletions.ineligible) == ({"t"}, set())

        await cluster.brokers[1].stop()
        await cluster.settle()
        assert context.deletions.ineligible == {"t"}
        assert cluster.brokers[0].hosted == {}

        cluster.loss = 0.0
        await cluster.brokers[1].start()
        await cluster.settle()
        assert await cluster.live()[0].store.exists(paths.topic("t")) is None
        assert cluster.brokers[1].hosted == {}
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_topic_of_a_foreign_tool_is_served_and_gets_an_id():
    async def scenario() -> None:
        cluster = await a_cluster(2)
        payload = b'{"version":1,"partitions":{"0":[0,1],"1":[1,0]}}'
        tool = cluster.ensemble.open_session()
        await tool.create(paths.topic("t"), payload)
        await tool.create(paths.topic("damaged"), b"{")
        await tool.create(paths.topic("bad name"), payload)
        await cluster.settle()

        written = TopicAssignment.decode((await tool.get(paths.topic("t"))).payload)
        assert written.topic_id is not None
        for broker in cluster.live():
            assert broker.image.topic_by_id(written.topic_id.bytes).name == "t"
            assert list(broker.image.topics) == ["t"]
            assert len(broker.hosted) == 2
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_added_partitions_are_served():
    async def scenario() -> None:
        cluster = await a_cluster(2, NewTopic("t", 1, 2))
        await cluster.admin().create_partitions("t", 3)
        await cluster.settle()
        for broker in cluster.live():
            assert sorted(broker.image.topics["t"].partitions) == [0, 1, 2]
            assert len(broker.hosted) == 3
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_deleted_topic_vanishes_everywhere_and_its_name_is_free():
    async def scenario() -> None:
        cluster = await a_cluster(2, NewTopic("t", 2, 2, configs={"retention.ms": "5"}))
        first_id = cluster.brokers[0].image.topics["t"].topic_id
        await cluster.admin().delete_topic("t")
        await cluster.settle()

        store = cluster.live()[0].store
        for path in (paths.topic("t"), paths.delete_topic("t"), paths.topic_entity("t").path):
            assert await store.exists(path) is None
        for broker in cluster.live():
            assert (broker.image.topics, broker.hosted) == ({}, {})
        assert "t" not in controller_of(cluster).node.controller.context.assignments

        await cluster.admin().create_topic(NewTopic("t", 1, 2))
        await cluster.settle()
        assert cluster.brokers[0].image.topics["t"].topic_id != first_id
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_deletion_waits_for_a_dead_broker_even_over_a_change_of_controllers():
    async def scenario() -> None:
        cluster = await a_cluster(3, NewTopic("t", assignment={0: [1, 2]}))
        await cluster.brokers[2].stop()
        await cluster.settle()
        await cluster.admin().delete_topic("t")
        await cluster.settle()
        assert await cluster.live()[0].store.exists(paths.topic("t")) is not None

        await cluster.brokers[0].stop()
        await cluster.settle()
        await cluster.brokers[2].start()
        await cluster.settle()

        assert await cluster.live()[0].store.exists(paths.topic("t")) is None
        assert await cluster.live()[0].store.exists(paths.delete_topic("t")) is None
        assert cluster.brokers[2].hosted == {}
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_broker_that_returns_while_a_deletion_is_halted_keeps_its_replica_until_it_is_asked():
    async def scenario() -> None:
        cluster = await a_cluster(3, NewTopic("t", assignment={0: [0, 1, 2]}))
        for broker_id in (1, 2):
            await cluster.brokers[broker_id].stop()
        await cluster.settle()
        await cluster.admin().delete_topic("t")
        await cluster.settle()
        await cluster.brokers[1].start()
        await cluster.settle()
        assert T0 in cluster.brokers[1].hosted  # a broker takes what a full request does not name for a stray
        assert cluster.brokers[1].hosted[T0].state.leader == -1

        await cluster.brokers[2].start()
        await cluster.settle()
        assert all(T0 not in broker.hosted for broker in cluster.live())
        assert await cluster.brokers[0].store.exists(paths.topic("t")) is None
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_deletion_of_a_missing_topic_is_removed_from_the_store():
    async def scenario() -> None:
        cluster = await a_cluster(1)
        await cluster.brokers[0].store.create(paths.delete_topic("nothing"))
        await cluster.settle()
        assert await cluster.brokers[0].store.exists(paths.delete_topic("nothing")) is None
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_leader_gets_its_followers_back_into_the_isr():
    async def scenario() -> None:
        cluster = await a_cluster(2, NewTopic("t", assignment={0: [0, 1]}))
        await cluster.brokers[1].stop()
        await cluster.settle()
        assert (await state_of(cluster)).isr == (0,)
        await cluster.brokers[1].start()
        await cluster.settle()

        await cluster.brokers[0].propose_isrs()
        await cluster.settle()

        assert (await state_of(cluster)).isr == (0, 1)
        assert all(broker.image.partition("t", 0).isr == (0, 1) for broker in cluster.live())
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_alter_partition_requests_with_wrong_epochs_or_values_are_refused(
    caplog: pytest.LogCaptureFixture,
):
    async def scenario() -> None:
        cluster = await a_cluster(2, NewTopic("t", assignment={0: [0, 1]}))
        request = AlterPartitionRequest(broker_id=0, broker_epoch=1)
        for _ in range(2):
            response = await cluster.brokers[0].node.controller.alter_partition(request)
            assert response.error_code == ErrorCode.STALE_BROKER_EPOCH
        registered = cluster.brokers[0].node.broker_epoch
        assert [one.getMessage() for one in caplog.records if "AlterPartition" in one.getMessage()] == [
            "AlterPartition of broker 0 is refused: its broker epoch is 1, the registered one is "
            f"{registered}"
        ]
        response = await cluster.brokers[1].node.controller.alter_partition(request)
        assert response.error_code == ErrorCode.NOT_CONTROLLER
        elected = await cluster.brokers[1].node.controller.elect_leaders(Election.PREFERRED, None)
        assert elected is ErrorCode.NOT_CONTROLLER
        unknown = AlterPartitionRequest.Topics(
            topic_id=bytes(15) + b"x", partitions=[AlterPartitionRequest.Topics.Partitions()]
        )
        epoch = cluster.brokers[0].node.broker_epoch
        request = AlterPartitionRequest(broker_id=0, broker_epoch=epoch, topics=[unknown])
        response = await cluster.brokers[0].node.controller.alter_partition(request)
        assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        rows = [AlterPartitionRequest.Topics.Partitions(leader_recovery_state=4)]
        request.topics = [AlterPartitionRequest.Topics(topic_name="t", partitions=rows)]
        response = await cluster.brokers[0].node.controller.alter_partition(request)
        assert response.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
        await cluster.stop()
        response = await cluster.brokers[0].node.controller.alter_partition(request)
        assert response.error_code == ErrorCode.NOT_CONTROLLER

    run_in_virtual_time(scenario())


def test_a_controlled_shutdown_moves_leaders_away_before_the_broker_stops():
    async def scenario() -> None:
        cluster = await a_cluster(
            2, NewTopic("t", assignment={0: [1, 0]}), NewTopic("alone", assignment={0: [1]})
        )
        request = ControlledShutdownRequest(broker_id=1, broker_epoch=cluster.brokers[1].node.broker_epoch)
        response = await cluster.brokers[0].node.controller.controlled_shutdown(request)
        await cluster.settle()

        assert (response.error_code, response.remaining_partitions) == (ErrorCode.NONE, [])
        assert await state_of(cluster) == PartitionStateNode(0, 1, (0,), 1)
        assert (await state_of(cluster, TopicPartition("alone", 0))).leader == 1
        stale = ControlledShutdownRequest(broker_id=1, broker_epoch=1)
        response = await cluster.brokers[0].node.controller.controlled_shutdown(stale)
        assert response.error_code == ErrorCode.STALE_BROKER_EPOCH
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_preferred_leaders_return_on_demand_by_node_and_by_themselves():
    async def strayed() -> SimulatedCluster:
        cluster = await a_cluster(2, NewTopic("t", assignment={0: [1, 0]}))
        await cluster.brokers[1].stop()
        await cluster.settle()
        await cluster.brokers[1].start()
        await cluster.settle()
        await cluster.brokers[0].propose_isrs()
        assert (await state_of(cluster)).leader == 0
        return cluster

    async def on_demand() -> None:
        cluster = await strayed()
        controller = cluster.brokers[0].node.controller
        assert await controller.elect_leaders(Election.PREFERRED, (T0, TopicPartition("x", 0))) == {
            T0: ErrorCode.NONE,
            TopicPartition("x", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert (await state_of(cluster)).leader == 1
        again = await controller.elect_leaders(Election.PREFERRED, (T0,))
        assert again == {T0: ErrorCode.ELECTION_NOT_NEEDED}
        assert await controller.elect_leaders(Election.PREFERRED, None) == {}
        await cluster.stop()

    async def by_node() -> None:
        cluster = await strayed()
        store = cluster.brokers[0].store
        await store.create(paths.PREFERRED_REPLICA_ELECTION, encode_partitions((T0,)))
        await cluster.settle()
        assert (await state_of(cluster)).leader == 1
        assert await store.exists(paths.PREFERRED_REPLICA_ELECTION) is None
        await cluster.stop()

    async def by_themselves() -> None:
        cluster = await strayed()
        await cluster.settle(301.0)
        assert (await state_of(cluster)).leader == 1
        await cluster.stop()

    async def soon_after_an_election() -> None:
        cluster = await strayed()
        await cluster.settle(60)
        assert (await state_of(cluster)).leader == 0
        await cluster.brokers[0].store.delete(paths.CONTROLLER)
        await cluster.settle(6)
        assert (await state_of(cluster)).leader == 1
        await cluster.stop()

    for scenario in (on_demand, by_node, by_themselves, soon_after_an_election):
        run_in_virtual_time(scenario())


def test_a_topic_that_allows_it_is_led_uncleanly_once_its_settings_say_so():
    async def scenario() -> None:
        cluster = await a_cluster(3, NewTopic("t", assignment={0: [2, 1]}))
        await cluster.brokers[1].stop()
        await cluster.settle()
        await cluster.brokers[2].stop()
        await cluster.brokers[1].start()
        await cluster.settle()
        assert (await state_of(cluster)).leader == -1

        cluster.unclean_topics.add("t")
        cluster.brokers[0].node.controller.topic_config_changed("t")
        await cluster.settle()
        state = await state_of(cluster)
        assert (state.leader, state.isr, state.is_recovering) == (1, (1,), True)
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_states_written_by_others_are_taken_over_when_they_leave_a_note():
    async def scenario() -> None:
        cluster = await a_cluster(2, NewTopic("t", assignment={0: [0, 1]}))
        foreign = cluster.ensemble.open_session()
        await foreign.set(paths.partition_state(T0), PartitionStateNode(0, 0, (0,), 1).encode())
        note = await foreign.create(paths.ISR_CHANGE_PREFIX, encode_partitions((T0,)), sequential=True)
        await cluster.settle()
        assert all(broker.image.partition("t", 0).isr == (0,) for broker in cluster.live())
        assert await foreign.exists(note.path) is None

        # Without a note the next write of the controller meets a version that it does not know.
        await foreign.set(paths.partition_state(T0), PartitionStateNode(0, 0, (0, 1), 1).encode())
        await cluster.brokers[0].stop()
        await cluster.settle()
        assert await state_of(cluster) == PartitionStateNode(1, 1, (1,), 2)
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_replicas_on_a_failed_disk_are_offline_until_they_are_back():
    async def scenario() -> None:
        cluster = await a_cluster(2, NewTopic("t", assignment={0: [1, 0]}))
        broker = cluster.brokers[1]
        host = broker._host

        broker._host = refusing  # type: ignore[method-assign]
        await notify_log_dir_event(broker.store, 1)
        await cluster.settle()
        assert await state_of(cluster) == PartitionStateNode(0, 1, (0,), 1)
        assert cluster.brokers[0].image.partition("t", 0).offline_replicas == (1,)
        context = controller_of(cluster).node.controller.context
        assert ReplicaState.OFFLINE in context.replica_states.values()

        broker._host = host  # type: ignore[method-assign]
        await broker.stop()
        await cluster.settle()
        await broker.start()
        await cluster.settle()
        assert cluster.brokers[0].image.partition("t", 0).offline_replicas == ()
        assert broker.hosted[T0].state.leader == 0
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_replica_that_found_no_room_is_led_once_its_broker_notes_that_there_is_some():
    async def scenario() -> None:
        cluster = await a_cluster(1)
        broker = cluster.brokers[0]
        host = broker._host
        broker._host = refusing  # type: ignore[method-assign]
        await cluster.admin().create_topic(NewTopic("t", assignment={0: [0]}))
        await cluster.settle()
        assert broker.image.partition("t", 0).leader == -1

        broker._host = host  # type: ignore[method-assign]
        await notify_log_dir_event(broker.store, 0)
        await cluster.settle()
        assert broker.image.partition("t", 0).leader == 0
        assert broker.image.partition("t", 0).offline_replicas == ()
        assert broker.hosted[T0].state.leader == 0
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_nodes_left_behind_by_a_controller_that_died_do_not_block_a_new_topic():
    async def scenario() -> None:
        cluster = await a_cluster(1)
        store = cluster.ensemble.open_session()
        payload = b'{"version":1,"partitions":{"0":[0],"1":[0]}}'
        ready = PartitionStateNode(0, 7, (0,), 1)
        await store.multi(
            [
                Create(paths.topic("t"), payload),
                Create(paths.topic_partitions("t")),
                Create(paths.topic_partition(T0)),
                Create(paths.partition_state(T0), ready.encode()),
            ]
        )
        await cluster.settle()
        assert (await state_of(cluster)).leader_epoch == 8
        assert (await state_of(cluster, TopicPartition("t", 1))).leader_epoch == 0
        assert len(cluster.brokers[0].hosted) == 2
        await cluster.stop()

    run_in_virtual_time(scenario())


def test_a_bug_in_one_event_costs_the_office_and_not_the_cluster(caplog):
    async def scenario() -> None:
        cluster = await a_cluster(2)
        controller = controller_of(cluster).node.controller

        async def broken() -> None:
            raise RuntimeError("a bug")

        controller._term._topics.topics_changed = broken  # type: ignore[union-attr, method-assign]
        await cluster.admin().create_topic(NewTopic("t", 1, 1))
        await cluster.settle()
        assert "t" in cluster.brokers[0].image.topics
        assert controller_of(cluster).node.controller.context.epoch == 2
        await cluster.stop()

    run_in_virtual_time(scenario())
    assert "a bug" in caplog.text
