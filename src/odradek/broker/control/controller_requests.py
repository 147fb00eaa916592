"""Requests to the controller, where this broker is the controller: of its own, of other brokers, of tools."""

from __future__ import annotations

from odradek.broker.control.administration import alter_reassignments, elect_leaders, list_reassignments
from odradek.cluster.brokers import UNKNOWN_BROKER_EPOCH
from odradek.cluster.node import ClusterNode
from odradek.common.error_codes import ErrorCode
from odradek.protocol.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ControlledShutdownRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from odradek.protocol.structs import Message
from odradek.transactions.producer_ids import ProducerIds


class ControllerRequestHandler:
    """Answers NOT_CONTROLLER where another broker is the controller. Lives on the broker's loop."""

    def __init__(self, node: ClusterNode, producer_ids: ProducerIds) -> None:
        self._node = node
        self._producer_ids = producer_ids

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
                return await elect_leaders(controller, request)
            case AlterPartitionReassignmentsRequest():
                return await alter_reassignments(controller, request)
            case ListPartitionReassignmentsRequest():
                return await list_reassignments(controller, request)
            case _:
                raise TypeError(f"{type(request).__name__} is not handled by the controller")

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
