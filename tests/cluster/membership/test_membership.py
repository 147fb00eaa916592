from __future__ import annotations

import asyncio
import json

import pytest

from cluster.virtual_time import run_in_virtual_time
from odradek.cluster.membership.brokers import Broker, Endpoint, SecurityProtocol
from odradek.cluster.membership.membership import (
    BrokerIdInUse,
    LiveBrokers,
    ensure_cluster_id,
    ensure_persistent_paths,
    generate_broker_id,
    register_broker,
)
from odradek.common.ids import uuid_from_text
from odradek.coordination import paths
from odradek.coordination.payloads import BrokerRegistration, Listener
from odradek.testing.memory_store import MemoryEnsemble, MemoryStore

REGISTRATION = BrokerRegistration((Listener("PLAINTEXT", "host", 9092),), 1234, rack="r")


async def a_store() -> tuple[MemoryEnsemble, MemoryStore]:
    ensemble = MemoryEnsemble()
    store = ensemble.open_session()
    await ensure_persistent_paths(store)
    return ensemble, store


def test_the_cluster_id_is_drawn_once_and_has_kafkas_form():
    async def scenario() -> None:
        ensemble, store = await a_store()
        cluster_id = await ensure_cluster_id(store)
        assert len(cluster_id) == 22
        uuid_from_text(cluster_id)
        assert await ensure_cluster_id(ensemble.open_session()) == cluster_id
        assert json.loads((await store.get("/cluster/id")).payload) == {"version": "1", "id": cluster_id}

    asyncio.run(scenario())


def test_generated_ids_begin_above_the_reserved_ones_and_never_repeat():
    async def scenario() -> None:
        _, store = await a_store()
        assert [await generate_broker_id(store) for _ in range(3)] == [1001, 1002, 1003]
        assert await generate_broker_id(store, 5000) == 5004

    asyncio.run(scenario())


def test_a_registration_is_an_ephemeral_node_whose_birth_is_the_broker_epoch():
    async def scenario() -> None:
        ensemble, store = await a_store()
        epoch = await register_broker(store, 0, REGISTRATION)

        node = await store.get("/brokers/ids/0")
        assert (epoch, node.stat.ephemeral_owner) == (node.stat.czxid, store.session_id)
        written = json.loads(node.payload)
        assert written["endpoints"] == ["PLAINTEXT://host:9092"]
        assert written["listener_security_protocol_map"] == {"PLAINTEXT": "PLAINTEXT"}
        assert (written["host"], written["port"], written["rack"]) == ("host", 9092, "r")
        assert (written["timestamp"], written["version"]) == ("1234", 5)

        assert await register_broker(store, 0, REGISTRATION) == epoch
        await store.close()
        assert await register_broker(ensemble.open_session(), 0, REGISTRATION) > epoch

    asyncio.run(scenario())


def test_a_second_live_broker_with_the_same_id_is_refused_and_the_first_is_named():
    async def scenario() -> None:
        ensemble, store = await a_store()
        await register_broker(store, 7, REGISTRATION)
        with pytest.raises(BrokerIdInUse, match=r"broker id 7 is taken.*PLAINTEXT://host:9092"):
            await register_broker(ensemble.open_session(), 7, REGISTRATION, wait_s=5)

    run_in_virtual_time(scenario())


def test_the_registration_of_an_earlier_run_is_waited_for_and_that_is_logged(caplog):
    async def scenario() -> None:
        ensemble, store = await a_store()
        earlier_epoch = await register_broker(store, 7, REGISTRATION)
        registering = asyncio.create_task(
            register_broker(ensemble.open_session(), 7, REGISTRATION, wait_s=10)
        )
        await asyncio.sleep(3)
        assert not registering.done()
        (line,) = caplog.messages
        assert "broker id 7 is still registered (PLAINTEXT://host:9092); waiting up to 10 s" in line
        store.expire()
        assert await registering > earlier_epoch

    run_in_virtual_time(scenario())


def test_every_broker_is_notified_of_brokers_that_join_change_and_leave():
    async def scenario() -> None:
        ensemble, store = await a_store()
        seen: list[dict[int, Broker]] = []
        membership = LiveBrokers(store, seen.append)
        await membership.start()
        other = ensemble.open_session()
        epoch = await register_broker(other, 3, REGISTRATION)
        await asyncio.sleep(1)
        secured = BrokerRegistration((Listener("SSL", "host", 9093, "SSL"),), 1234)
        await other.set("/brokers/ids/3", secured.encode())
        await store.create("/brokers/ids/9", b"damaged", ephemeral=True)
        await asyncio.sleep(1)
        assert membership.epochs() == {3: epoch}
        assert (membership.epoch(3), membership.epoch(4)) == (epoch, -1)
        await other.close()
        await asyncio.sleep(1)
        await membership.stop()

        plain = Endpoint("PLAINTEXT", "host", 9092, SecurityProtocol.PLAINTEXT)
        ssl = Endpoint("SSL", "host", 9093, SecurityProtocol.SSL)
        assert seen == [{3: Broker(3, (plain,), "r", epoch)}, {3: Broker(3, (ssl,), None, epoch)}, {}]

    run_in_virtual_time(scenario())


def test_the_paths_that_tools_expect_are_there():
    async def scenario() -> None:
        _, store = await a_store()
        for path in ("/brokers/ids", "/brokers/topics", "/admin/delete_topics", "/config/topics"):
            assert await store.exists(path) is not None
        assert paths.CONFIG_CHANGES in paths.PERSISTENT_PATHS

    asyncio.run(scenario())
