"""Brokers that share the embedded store, in real time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.cluster.control_fence import ControlFence
from odradek.cluster.controller.channels import BrokerChannel, LocalChannel
from odradek.cluster.controller.events import ControlResponse
from odradek.cluster.controller.requests import ControlRequest
from odradek.cluster.membership.brokers import Broker
from odradek.cluster.membership.membership import BrokerIdInUse
from odradek.cluster.metadata import MetadataImage
from odradek.cluster.node import ClusterNode, NodeHooks, NodeSettings
from odradek.cluster.topics.new_topics import NewTopic
from odradek.cluster.topics.placement import BrokerLocation
from odradek.cluster.topics.topic_admin import TopicAdmin
from odradek.common.error_codes import ErrorCode
from odradek.coordination import paths
from odradek.coordination.embedded.store import SqliteStore
from odradek.coordination.paths import ConfigEntity, topic_entity
from odradek.coordination.payloads import Listener
from odradek.protocol.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)


class Member:
    """A broker that only keeps an image."""

    def __init__(self, path: Path, peers: dict[int, Member], broker_id: int | None) -> None:
        self.peers = peers
        self.fence = ControlFence()
        self.image = MetadataImage("")
        self.local = LocalChannel(self.handle_request)
        self.changed: list[ConfigEntity] = []
        hooks = NodeHooks(
            connect=self.connect,
            on_registered=lambda epoch: setattr(self.fence, "broker_epoch", epoch),
            on_brokers=lambda _: None,
            on_config_change=self.config_changed,
            load_configs=self.load_configs,
            on_fatal=pytest.fail,
        )
        settings = NodeSettings(broker_id=broker_id)
        self.node = ClusterNode(lambda: SqliteStore.open(path / "store"), settings, hooks)

    async def start(self) -> None:
        await self.node.connect()
        self.peers[self.node.broker_id] = self
        await self.node.join((Listener("PLAINTEXT", "127.0.0.1", 9092),))

    async def stop(self) -> None:
        del self.peers[self.node.broker_id]
        await self.node.leave()

    def connect(self, broker: Broker) -> BrokerChannel:
        return self.peers[broker.broker_id].local

    async def config_changed(self, entity: ConfigEntity) -> None:
        self.changed.append(entity)

    async def load_configs(self) -> None:
        """It has no settings."""

    async def handle_request(self, request: ControlRequest) -> ControlResponse:
        refusal = self.fence.admit(request.controller_id, request.controller_epoch, request.broker_epoch)
        refused = ErrorCode.NONE if refusal is None else refusal.error_code
        if isinstance(request, LeaderAndIsrRequest):
            return LeaderAndIsrResponse(error_code=refused)
        if isinstance(request, StopReplicaRequest):
            return StopReplicaResponse(error_code=refused)
        assert isinstance(request, UpdateMetadataRequest)
        if not refused:
            self.image.update(request)
        return UpdateMetadataResponse(error_code=refused)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.002)


def admin_of(member: Member) -> TopicAdmin:
    return TopicAdmin(lambda: member.node.store, lambda: [BrokerLocation(id_) for id_ in member.peers])


def leader(member: Member, topic: str) -> int | None:
    partition = member.image.partition(topic, 0)
    return None if partition is None else partition.leader


def test_three_brokers_share_topics_leaders_and_controller(tmp_path):
    async def scenario() -> None:
        peers: dict[int, Member] = {}
        members = [Member(tmp_path, peers, id_) for id_ in range(3)]
        for member in members:
            await member.start()
        assert [member.node.controller.is_active for member in members] == [True, False, False]
        assert len({member.node.cluster_id for member in members}) == 1

        admin = admin_of(members[1])
        await admin.create_topic(NewTopic("t", assignment={0: [0, 1, 2]}))
        await until(lambda: all(leader(member, "t") == 0 for member in members))
        await admin.change_configs("t", lambda _: {"retention.ms": "1"})
        await until(lambda: all(member.changed == [topic_entity("t")] for member in members))

        await members[0].stop()
        await until(lambda: all(leader(member, "t") == 1 for member in members[1:]))
        assert sum(member.node.controller.is_active for member in members[1:]) == 1

        again = members[0] = Member(tmp_path, peers, 0)
        await again.start()
        await until(lambda: leader(again, "t") == 1)
        await admin.delete_topic("t")
        await until(lambda: all("t" not in member.image.topics for member in members))
        async with asyncio.timeout(10):
            while await members[1].node.store.exists(paths.topic("t")) is not None:
                await asyncio.sleep(0.002)
        for member in members:
            await member.stop()

    asyncio.run(scenario())


def test_a_second_broker_with_the_same_id_does_not_join(tmp_path):
    async def scenario() -> None:
        peers: dict[int, Member] = {}
        first, second = Member(tmp_path, peers, 5), Member(tmp_path, {}, 5)
        await first.start()
        with pytest.raises(BrokerIdInUse):
            await second.start()
        await second.node.leave()
        await first.stop()

    asyncio.run(scenario())


def test_brokers_without_an_id_get_one_and_keep_what_their_disks_remember(tmp_path):
    async def scenario() -> None:
        peers: dict[int, Member] = {}
        first, second = Member(tmp_path, peers, None), Member(tmp_path, peers, None)
        await first.start()
        await second.start()
        assert (first.node.broker_id, second.node.broker_id) == (1001, 1002)
        await first.stop()
        again = Member(tmp_path, peers, None)
        await again.node.connect(known_broker_id=1001)
        assert again.node.broker_id == 1001
        await again.node.leave()
        configured = Member(tmp_path, peers, 7)
        await configured.node.connect(known_broker_id=1001)
        assert configured.node.broker_id == 7, "so that the data of another broker is refused"
        await configured.node.leave()
        await second.stop()

    asyncio.run(scenario())
