"""WriteTxnMarkers, API key 27: a transaction coordinator writes the end of transactions to our logs.

An administrator who may ALTER the cluster ends a transaction that hangs by it as well (KIP-1037).

Versions 1-2.  1: flexible.  2: the transaction.version, which decides how the epoch is checked (KIP-890).
"""

from __future__ import annotations

import asyncio

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.broker.requests.services import Services
from odradek.broker.requests.waiting.commit_wait import wait_committed
from odradek.broker.security.acls import CLUSTER, Operation
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.common.ids import TopicPartition
from odradek.coordinator.result import ProducerStamp, TransactionMarker
from odradek.groups.partitions import CONSUMER_OFFSETS
from odradek.log.errors import StorageError
from odradek.log.partition.leader_batches import Origin
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from odradek.records.control import ControlType, EndTransactionMarker, build_end_transaction_marker
from odradek.replication.partition import ALL_IN_SYNC
from odradek.replication.replica_manager import UnknownPartition

_Result = WriteTxnMarkersResponse.Markers
_Row = _Result.Topics.Partitions

# Short, because the coordinator's next request waits for this one; what is late then, it sends again.
COMMIT_TIMEOUT_MS = 5000
# A coordinator of groups that cannot write now is another leader's business soon.
_AS_LEADER = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


@handles(ApiKey.WRITE_TXN_MARKERS, versions=(1, 2))
async def write_txn_markers(
    context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse:
    """Each partition has its own error code: NONE if its marker is on all replicas in sync in time."""
    if not context.is_allowed(Operation.ALTER, CLUSTER):
        context.authorize(Operation.CLUSTER_ACTION)
    response = WriteTxnMarkersResponse()
    writes = []
    for asked in request.markers:
        result = _Result(producer_id=asked.producer_id)
        response.markers.append(result)
        marker = TransactionMarker(
            ProducerStamp(asked.producer_id, asked.producer_epoch),
            asked.transaction_result,
            asked.coordinator_epoch,
            asked.transaction_version,
        )
        for topic in asked.topics:
            rows = [_Row(partition_index=index) for index in topic.partition_indexes]
            result.topics.append(_Result.Topics(name=topic.name, partitions=rows))
            writes += [
                _write(context.services, TopicPartition(topic.name, row.partition_index), marker, row)
                for row in rows
            ]
    await asyncio.gather(*writes)
    return response


async def _write(services: Services, partition: TopicPartition, marker: TransactionMarker, row: _Row) -> None:
    try:
        if partition.topic == CONSUMER_OFFSETS:
            async with asyncio.timeout(COMMIT_TIMEOUT_MS / 1000):
                await services.groups.end_transaction(partition.partition, marker)
        else:
            await _write_to_log(services, partition, marker)
    except TimeoutError:
        row.error_code = ErrorCode.REQUEST_TIMED_OUT
    except UnknownPartition:
        row.error_code = services.why_not_here(*partition)
    except KafkaError as error:
        row.error_code = _AS_LEADER.get(error.error_code, error.error_code)
        if isinstance(error, StorageError):
            services.replicas.disk_failed(partition, error)


async def _write_to_log(services: Services, partition: TopicPartition, marker: TransactionMarker) -> None:
    led = services.replicas.get(*partition)
    led.require_leader()
    now_ms = services.clock.now_ms()
    batch = build_end_transaction_marker(
        EndTransactionMarker(
            ControlType.COMMIT if marker.is_commit else ControlType.ABORT, marker.coordinator_epoch
        ),
        producer_id=marker.producer.producer_id,
        producer_epoch=marker.producer.producer_epoch,
        timestamp_ms=now_ms,
    )
    info = led.append(batch, ALL_IN_SYNC, now_ms, Origin.COORDINATOR, marker.transaction_version)
    if not led.is_committed(info.last_offset):
        await wait_committed(services.waiting_produces, led, info.last_offset, COMMIT_TIMEOUT_MS)
