from __future__ import annotations

from odradek.testing import Cluster
from odradek.testing.live_brokers import live_brokers


def test_a_broker_lists_itself():
    with Cluster({"broker.id": 5}) as cluster:
        assert live_brokers(cluster.bootstrap) == {5}
