"""Where the markers of a transaction are sent, and in which version."""

from __future__ import annotations

from typing import Any

import pytest

from broker.conftest import Broker
from odradek.broker.coordinators.transaction_coordination import MarkerCluster
from odradek.cluster.features import SUPPORTED, TRANSACTION_VERSION
from odradek.cluster.membership.brokers import Broker as RegisteredBroker
from odradek.net.broker_versions import VERSIONS
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import encode_request
from odradek.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

OURS = RegisteredBroker(1, features=SUPPORTED)
OLDER = RegisteredBroker(1, features={TRANSACTION_VERSION: (0, 1)})
WITHOUT_FEATURES = RegisteredBroker(1)
"""As Kafka 3.9 registers on ZooKeeper: it would close the connection at a version that it does not know."""


@pytest.mark.parametrize(
    ("peer", "version"), [(OURS, 2), (OLDER, 1), (WITHOUT_FEATURES, 1), (None, 1)], ids=str
)
def test_markers_are_sent_in_a_version_that_the_leader_knows(
    run: Any, peer: RegisteredBroker | None, version: int
) -> None:
    sent = []

    async def send(broker_id: int, request: Any, *, version: int | None = None, purpose: str = "") -> Any:
        number = VERSIONS[ApiKey.WRITE_TXN_MARKERS] if version is None else version
        assert encode_request(ApiKey.WRITE_TXN_MARKERS, number, 1, "", request)
        sent.append((broker_id, number, request.markers[0].transaction_version))
        return WriteTxnMarkersResponse()

    async def scenario(broker: Broker, _: Any) -> None:
        services = broker.services
        services.send_to_broker = send
        services.features._brokers = {} if peer is None else {1: peer}
        marker = WriteTxnMarkersRequest.Markers(producer_id=7, producer_epoch=1, transaction_version=2)
        await MarkerCluster(services).write_markers(1, WriteTxnMarkersRequest(markers=[marker]))

    run(scenario)
    assert sent == [(1, version, 2 if version == 2 else 0)]
