"""`odradek start --brokers N`: what each broker gets, and what several cannot have."""

from __future__ import annotations

import pytest

from odradek.broker.settings.load import Given, load
from odradek.cli.options import UsageProblem
from odradek.cli.start_brokers import load_each


def configs(count, *overrides, data_dir="/data"):
    defaults = [("log.dir", "odradek-data"), ("listeners", "PLAINTEXT://127.0.0.1:9092")]
    options = [] if data_dir is None else [Given("log.dirs", data_dir, "--data-dir")]
    shared = load(None, overrides, defaults, options).config
    return load_each(shared, count, None, overrides, defaults, options)


def test_each_broker_gets_its_own_id_port_and_directory_and_all_share_the_store():
    found = configs(3, "num.partitions=5")
    assert [config.given_broker_id for config in found] == [0, 1, 2]
    assert [config.endpoints[0].port for config in found] == [9092, 9093, 9094]
    assert [config.data_dirs for config in found] == [
        ("/data/broker-0",),
        ("/data/broker-1",),
        ("/data/broker-2",),
    ]
    assert {config.coordination_url for config in found} == {"sqlite:/data/coordination.db"}
    assert {config.num_partitions for config in found} == {5}


def test_a_store_that_is_given_stays():
    found = configs(2, "odradek.coordination=zookeeper://zk:2181/a")
    assert {config.coordination_url for config in found} == {"zookeeper://zk:2181/a"}


def test_every_listener_and_what_is_advertised_are_shifted():
    found = configs(
        2,
        "listeners=PLAINTEXT://127.0.0.1:9092,INNER://127.0.0.1:19092",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INNER:PLAINTEXT",
        "inter.broker.listener.name=INNER",
        "advertised.listeners=PLAINTEXT://localhost:29092,INNER://127.0.0.1:19092",
        "odradek.metrics.listener=127.0.0.1:9100",
    )
    assert [endpoint.port for endpoint in found[1].endpoints] == [9093, 19093]
    assert [endpoint.port for endpoint in found[1].advertised_endpoints] == [29093, 19093]
    assert found[1].metrics_endpoint.port == 9101


def test_port_0_stays_any_free_port():
    assert [config.endpoints[0].port for config in configs(2, "listeners=PLAINTEXT://127.0.0.1:0")] == [0, 0]


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (["broker.id=3"], "leave out broker.id"),
        (["log.dirs=/a,/b"], "needs one data directory"),
        (
            [
                "listeners=A://127.0.0.1:9092,B://127.0.0.1:9093",
                "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT",
                "inter.broker.listener.name=A",
            ],
            "the ports of 2 brokers overlap",
        ),
    ],
)
def test_what_several_cannot_share_is_refused(overrides, problem):
    with pytest.raises(UsageProblem, match=problem):
        configs(2, *overrides, data_dir=None)
