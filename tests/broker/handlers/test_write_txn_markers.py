"""WriteTxnMarkers at a leader whose partitions are not all replicated in time."""

from __future__ import annotations

from typing import Any

import pytest

from broker.conftest import BROKER_ID, Broker, Wire
from odradek.broker.coordinators.transaction_coordination import MARKERS_TIMEOUT_S
from odradek.broker.handlers import write_txn_markers
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import WriteTxnMarkersRequest
from odradek.replication.partition import LeaderAndIsrState

SILENT_FOLLOWER = 9
Marker = WriteTxnMarkersRequest.Markers


def test_a_partition_that_is_not_replicated_in_time_has_its_own_error(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_txn_markers, "COMMIT_TIMEOUT_MS", 50)

    async def scenario(broker: Broker, wire: Wire) -> None:
        replicas = (BROKER_ID, SILENT_FOLLOWER)
        broker.host("orders", 0)
        broker.host("orders", 1, state=LeaderAndIsrState(BROKER_ID, 0, replicas, replicas, 0))
        topic = Marker.Topics(name="orders", partition_indexes=[0, 1])
        marker = Marker(
            producer_id=7, producer_epoch=1, transaction_result=True, coordinator_epoch=0, topics=[topic]
        )
        request = WriteTxnMarkersRequest(markers=[marker])
        answer = await wire.ask(ApiKey.WRITE_TXN_MARKERS, 1, request)
        rows = answer.markers[0].topics[0].partitions
        assert [row.error_code for row in rows] == [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]

    run(scenario)


def test_a_leader_answers_before_the_coordinator_gives_up() -> None:
    assert write_txn_markers.COMMIT_TIMEOUT_MS / 1000 < MARKERS_TIMEOUT_S / 2
