"""Changed settings count on every broker: on one that was away when they were changed, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.requests.services import Services
from odradek.broker.server import BrokerServer
from odradek.cluster.entity_configs import change_configs
from odradek.coordination.paths import broker_entity, group_entity, topic_entity
from odradek.coordination.store import Store
from odradek.log.config import LogConfig

from .on_this_loop import run, until
from .together import BrokersInMemory, brokers_together

TIMEOUT = {"consumer.session.timeout.ms": "50000"}


async def change_everything(store: Store) -> None:
    """Set and unset something of a topic, a group and all brokers."""
    await change_configs(store, topic_entity("orders"), lambda _: {"min.insync.replicas": "2"})
    await change_configs(store, topic_entity("others"), lambda _: {})
    await change_configs(store, group_entity("new"), lambda _: TIMEOUT)
    await store.delete(group_entity("old").path)
    await change_configs(store, broker_entity(None), lambda _: {"message.max.bytes": "5000"})


def topic_config(server: BrokerServer, topic: str) -> LogConfig:
    return server.services.replicas.get(topic, 0).log.config


def assert_everything_counts(server: BrokerServer) -> None:
    assert topic_config(server, "orders").min_insync_replicas == 2
    assert topic_config(server, "others").min_insync_replicas == 1
    assert server.services.group_configs.group_ids() == ["new"]
    assert server.config.message_max_bytes == 5000
    assert topic_config(server, "orders").max_message_bytes == 5000


async def create(brokers: BrokersInMemory) -> None:
    for topic in ("orders", "others"):
        await brokers.create_topic(topic, {0: [1, 2]})
        for server in brokers.running.values():
            await until(lambda server=server, topic=topic: server.services.replicas.find(topic, 0))
    store = brokers.sessions[1]
    await change_configs(store, topic_entity("others"), lambda _: {"min.insync.replicas": "2"})
    await change_configs(store, group_entity("old"), lambda _: TIMEOUT)
    for server in brokers.running.values():
        await until(lambda server=server: server.services.group_configs.group_ids() == ["old"])
        await until(lambda server=server: topic_config(server, "others").min_insync_replicas == 2)


def test_a_broker_applies_changes_made_while_it_had_no_session(tmp_path: Path) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 2, made_by=BrokersInMemory) as brokers:
            assert isinstance(brokers, BrokersInMemory)
            await create(brokers)
            away = brokers.running[2]
            epoch = away.node.broker_epoch
            brokers.may_connect.clear()
            brokers.sessions[2].expire()
            await change_everything(brokers.sessions[1])
            brokers.may_connect.set()
            await until(lambda: away.node.broker_epoch != epoch and 2 in away.node.membership.brokers)
            await until(lambda: topic_config(away, "orders").min_insync_replicas == 2)
            assert_everything_counts(away)

    run(main)


def test_a_broker_applies_changes_made_while_it_loads_its_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 2, made_by=BrokersInMemory) as brokers:
            assert isinstance(brokers, BrokersInMemory)
            await create(brokers)
            await brokers.stop(2)
            start_metrics = BrokerServer._start_metrics

            async def change_first(server: BrokerServer, services: Services) -> None:
                await change_everything(brokers.sessions[1])
                await start_metrics(server, services)

            monkeypatch.setattr(BrokerServer, "_start_metrics", change_first)
            assert_everything_counts(await brokers.start(2))

    run(main)


def test_every_broker_applies_a_change(tmp_path: Path) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 3, made_by=BrokersInMemory) as brokers:
            assert isinstance(brokers, BrokersInMemory)
            await brokers.create_topic("orders", {0: [1, 2, 3]})
            for server in brokers.running.values():
                await until(lambda server=server: server.services.replicas.find("orders", 0))
            await brokers.running[3].services.topics.change_configs(
                "orders", lambda _: {"min.insync.replicas": "2"}
            )
            for server in brokers.running.values():
                await until(lambda server=server: topic_config(server, "orders").min_insync_replicas == 2)

    run(main)


def test_damaged_settings_change_nothing_and_keep_no_broker_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 2, made_by=BrokersInMemory) as brokers:
            assert isinstance(brokers, BrokersInMemory)
            await create(brokers)
            store = brokers.sessions[1]
            await store.set(topic_entity("others").path, b"no json")
            await store.set(group_entity("old").path, b"no json")
            await store.create(broker_entity(None).path, b"no json")
            away = brokers.running[2]
            epoch = away.node.broker_epoch
            brokers.sessions[2].expire()
            await until(lambda: away.node.broker_epoch != epoch and 2 in away.node.membership.brokers)
            assert topic_config(away, "others").min_insync_replicas == 2
            assert away.services.group_configs.group_ids() == ["old"]

            await brokers.stop(2)
            again = await brokers.start(2)
            assert topic_config(again, "orders").min_insync_replicas == 1

    run(main)
    assert "the settings of topic others cannot be read" in caplog.text
    assert not [record for record in caplog.records if record.exc_info], caplog.text
