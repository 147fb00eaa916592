"""ElectLeaders, AlterPartitionReassignments and ListPartitionReassignments, answered by the controller."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.cluster.controller.controller import Controller
from odradek.cluster.controller.state.election import Election
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}
NOT_CONTROLLER_MESSAGE = "This is not the controller; the metadata says which broker is."

_Elected = ElectLeadersResponse.ReplicaElectionResults
_ElectionRow = ElectLeadersResponse.ReplicaElectionResults.PartitionResult
_Reassigned = AlterPartitionReassignmentsResponse.Responses
_ReassignedRow = AlterPartitionReassignmentsResponse.Responses.Partitions
_Listed = ListPartitionReassignmentsResponse.Topics
_ListedRow = ListPartitionReassignmentsResponse.Topics.Partitions


async def elect_leaders(controller: Controller, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Elect preferred leaders, or leaders that may have lost records."""
    election = ELECTIONS.get(request.election_type)
    if election is None:
        return ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST)
    asked = request.topic_partitions
    partitions = (
        None
        if asked is None
        else tuple(TopicPartition(topic.topic, index) for topic in asked for index in topic.partitions)
    )
    results = await controller.elect_leaders(election, partitions)
    if isinstance(results, ErrorCode):
        return ElectLeadersResponse(
            error_code=results, replica_election_results=_refused_elections(partitions or (), results)
        )
    topics: dict[str, _Elected] = {}
    for partition, error in results.items():
        topic = topics.setdefault(partition.topic, _Elected(topic=partition.topic))
        topic.partition_result.append(_election_row(partition.partition, error))
    return ElectLeadersResponse(replica_election_results=list(topics.values()))


def _refused_elections(partitions: Iterable[TopicPartition], error: ErrorCode) -> list[_Elected]:
    """For version 0, which has no error of the whole request."""
    topics: dict[str, _Elected] = {}
    for partition in partitions:
        topic = topics.setdefault(partition.topic, _Elected(topic=partition.topic))
        topic.partition_result.append(_election_row(partition.partition, error))
    return list(topics.values())


def _election_row(index: int, error: ErrorCode) -> _ElectionRow:
    message = None if error is ErrorCode.NONE else error.name.replace("_", " ").capitalize() + "."
    return _ElectionRow(partition_id=index, error_code=error, error_message=message)


async def alter_reassignments(
    controller: Controller, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Begin, replace or cancel reassignments; each partition has its own result."""
    targets = {
        TopicPartition(topic.name, row.partition_index): None if row.replicas is None else tuple(row.replicas)
        for topic in request.topics
        for row in topic.partitions
    }
    results = await controller.alter_reassignments(
        targets, allows_other_factor=request.allow_replication_factor_change
    )
    if isinstance(results, ErrorCode):
        return AlterPartitionReassignmentsResponse(error_code=results, error_message=NOT_CONTROLLER_MESSAGE)
    topics: dict[str, _Reassigned] = {}
    for partition, result in results.items():
        topic = topics.setdefault(partition.topic, _Reassigned(name=partition.topic))
        topic.partitions.append(
            _ReassignedRow(
                partition_index=partition.partition, error_code=result.error, error_message=result.message
            )
        )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=list(topics.values()),
    )


async def list_reassignments(
    controller: Controller, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """The reassignments in progress, of the named partitions or of all."""
    asked = request.topics
    partitions = (
        None
        if asked is None
        else tuple(TopicPartition(topic.name, index) for topic in asked for index in topic.partition_indexes)
    )
    found = await controller.list_reassignments(partitions)
    if isinstance(found, ErrorCode):
        return ListPartitionReassignmentsResponse(error_code=found, error_message=NOT_CONTROLLER_MESSAGE)
    topics: dict[str, _Listed] = {}
    for partition, assignment in found.items():
        topic = topics.setdefault(partition.topic, _Listed(name=partition.topic))
        topic.partitions.append(
            _ListedRow(
                partition_index=partition.partition,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding),
                removing_replicas=list(assignment.removing),
            )
        )
    return ListPartitionReassignmentsResponse(topics=list(topics.values()))
