"""Requests to the controller, where this broker is the controller: of its own, of other brokers, of tools."""

from __future__ import annotations

import asyncio

from odradek.broker.control.administration import alter_reassignments, elect_leaders, list_reassignments
from odradek.broker.control.state_changes import StateChanges
from odradek.cluster.membership.brokers import UNKNOWN_BROKER_EPOCH
from odradek.cluster.metadata import MetadataImage
from odradek.cluster.node import ClusterNode
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ControlledShutdownRequest,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
)
from odradek.protocol.structs import Message
from odradek.transactions.producer_ids import ProducerIds

LATE_METADATA = "The leader is elected, but the metadata does not have it yet."


class ControllerRequestHandler:
    """Answers NOT_CONTROLLER where another broker is the controller. Lives on the broker's loop."""

    def __init__(
        self, node: ClusterNode, producer_ids: ProducerIds, image: MetadataImage, changes: StateChanges
    ) -> None:
        """`changes` are those of the image."""
        self._node = node
        self._producer_ids = producer_ids
        self._image = image
        self._changes = changes

    async def handle(self, request: Message) -> Message:
        """The response to a request of any kind."""
        controller = self._node.controller
        match request:
            case AlterPartitionRequest():
                return await controller.alter_partition(request)
            case ControlledShutdownRequest():
                return await controller.controlled_shutdown(request)
            case AllocateProducerIdsRequest():
                return await self.allocate_producer_ids(request)
            case ElectLeadersRequest():
                return await self.elect_leaders(request)
            case AlterPartitionReassignmentsRequest():
                return await alter_reassignments(controller, request)
            case ListPartitionReassignmentsRequest():
                return await list_reassignments(controller, request)
            case _:
                raise TypeError(f"{type(request).__name__} is not handled by the controller")

    async def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        """Answered when this broker's metadata has the new leaders; REQUEST_TIMED_OUT for those missing."""
        response = await elect_leaders(self._node.controller, request)
        context = self._node.controller.context
        if context is None:
            return response
        elected = {
            TopicPartition(topic.topic, row.partition_id): row
            for topic in response.replica_election_results
            for row in topic.partition_result
            if row.error_code == ErrorCode.NONE
        }
        epochs = {one: context.leadership[one].leader_epoch for one in elected if one in context.leadership}
        missing: list[TopicPartition] = []

        def is_known() -> bool:
            missing[:] = [one for one, epoch in epochs.items() if self._leader_epoch(one) < epoch]
            return not missing

        deadline = asyncio.get_running_loop().time() + request.timeout_ms / 1000
        await self._changes.wait_until(is_known, deadline)
        for one in missing:
            elected[one].error_code = ErrorCode.REQUEST_TIMED_OUT
            elected[one].error_message = LATE_METADATA
        return response

    def _leader_epoch(self, partition: TopicPartition) -> int:
        known = self._image.partition(partition.topic, partition.partition)
        return -1 if known is None else known.leader_epoch

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        """Allocate a block of producer ids for a registered broker."""
        context = self._node.controller.context
        if context is None:
            return AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
        epoch = context.broker_epoch(request.broker_id)
        if epoch == UNKNOWN_BROKER_EPOCH:
            return AllocateProducerIdsResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)
        if request.broker_epoch != epoch:
            return AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        block = await self._producer_ids.take_block(request.broker_id)
        return AllocateProducerIdsResponse(
            producer_id_start=block.first, producer_id_len=block.last - block.first + 1
        )
