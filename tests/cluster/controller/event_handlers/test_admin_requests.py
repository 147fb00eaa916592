"""What brokers and administrators ask of the controller, over a store in memory."""

from __future__ import annotations

from cluster.simulated import SimulatedCluster
from cluster.virtual_time import run_in_virtual_time
from odradek.cluster.topics.new_topics import NewTopic
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.coordination import paths
from odradek.coordination.payloads import PartitionStateNode
from odradek.protocol.messages import AlterPartitionRequest

PARTITIONS = [TopicPartition("t", index) for index in range(4)]
TOUCHED = PARTITIONS[1]


def test_a_state_written_by_others_refuses_the_isr_of_that_partition_only():
    async def scenario() -> None:
        cluster = await SimulatedCluster.start(2)
        assignment = {one.partition: [0, 1] for one in PARTITIONS}
        await cluster.admin().create_topic(NewTopic("t", assignment=assignment))
        await cluster.settle()
        leader = cluster.brokers[0]
        foreign = cluster.ensemble.open_session()
        state = PartitionStateNode(0, 0, (0, 1), 1)
        await foreign.set(paths.partition_state(TOUCHED), state.encode())

        asked = [
            leader._alter_request(one, leader.hosted[one], {0: leader.node.broker_epoch})
            for one in PARTITIONS
        ]
        rows = [row for request in asked for topic in request.topics for row in topic.partitions]
        topic = AlterPartitionRequest.Topics(topic_name="t", partitions=rows)
        request = AlterPartitionRequest(broker_id=0, broker_epoch=leader.node.broker_epoch, topics=[topic])
        response = await leader.node.controller.alter_partition(request)
        await cluster.settle()

        answered = {row.partition_index: row for row in response.topics[0].partitions}
        assert [answered[one.partition].error_code for one in PARTITIONS] == [
            ErrorCode.INVALID_UPDATE_VERSION if one == TOUCHED else ErrorCode.NONE for one in PARTITIONS
        ]
        assert [list(answered[one.partition].isr) for one in PARTITIONS if one != TOUCHED] == [[0]] * 3
        # Its leader waits for this.
        assert leader.hosted[TOUCHED].state.partition_epoch == 1
        await cluster.stop()

    run_in_virtual_time(scenario())
