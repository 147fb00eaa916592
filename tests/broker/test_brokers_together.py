"""Two and three brokers in one process: they start, are led by one controller, and stop in order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.control.control_requests import ControlRequestHandler
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    LeaderAndIsrRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    UpdateMetadataRequest,
)

from .on_this_loop import run, until
from .together import Brokers, brokers_together


def test_every_broker_becomes_ready_and_lists_all_of_them(tmp_path: Path) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 3) as brokers:
            for broker_id, server in brokers.running.items():
                await until(lambda server=server: len(server.services.image.brokers) == 3)
                response = await brokers.ask(broker_id, ApiKey.METADATA, 12, MetadataRequest(topics=None))
                assert [row.node_id for row in response.brokers] == [1, 2, 3]
                assert response.controller_id == 1

    run(main)


def test_a_topic_created_anywhere_is_hosted_where_its_replicas_are(tmp_path: Path) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 3) as brokers:
            await brokers.create_topic("orders", {0: [2, 3], 1: [3, 1]}, via=3)
            await until(lambda: all(brokers.leader("orders", 1, seen_by=id_) == 3 for id_ in (1, 2, 3)))
            assert brokers.leader("orders", 0) == 2
            await until(lambda: brokers.running[2].services.replicas.find("orders", 0) is not None)
            await until(lambda: brokers.running[1].services.replicas.find("orders", 1) is not None)
            assert brokers.running[1].services.replicas.find("orders", 0) is None
            assert (tmp_path / "broker-3" / "orders-0").is_dir()

    run(main)


def test_a_broker_that_stops_hands_its_leaders_over_first(tmp_path: Path) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 3) as brokers:
            await brokers.create_topic("orders", {0: [1, 2], 1: [2, 3], 2: [3, 1]})
            await brokers.create_topic("alone", {0: [3]})
            await brokers.stop(3)
            await until(lambda: brokers.leader("alone") == -1)
            assert brokers.leader("orders", 2) == 1
            await brokers.stop(1)
            assert brokers.leader("orders", 0, seen_by=2) == 2
            await until(lambda: brokers.running[2].node.controller.is_active)
            await brokers.start(1)
            await until(lambda: brokers.leader("orders", 0, seen_by=1) == 2)
            assert brokers.controller().node.broker_id == 2

    run(main)


def test_the_controller_refuses_what_is_not_of_the_present(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 2) as brokers:
            node = brokers.running[2].node
            own_epoch = node.broker_epoch
            controller_epoch = brokers.running[1].node.controller.context.epoch

            async def update(controller_epoch: int, broker_epoch: int) -> int:
                request = UpdateMetadataRequest(
                    controller_id=9, controller_epoch=controller_epoch, broker_epoch=broker_epoch
                )
                response = await brokers.ask(2, ApiKey.UPDATE_METADATA, 8, request)
                return ErrorCode(response.error_code)

            assert await update(controller_epoch - 1, own_epoch) is ErrorCode.STALE_CONTROLLER_EPOCH
            assert await update(controller_epoch, own_epoch) is ErrorCode.STALE_CONTROLLER_EPOCH
            assert await update(controller_epoch, own_epoch - 1) is ErrorCode.STALE_BROKER_EPOCH
            assert [
                one.getMessage() for one in caplog.records if "from controller 9" in one.getMessage()
            ] == [
                f"UpdateMetadataRequest from controller 9 is refused: its controller epoch is "
                f"{controller_epoch - 1}, and broker 1 is controller in epoch {controller_epoch}",
                f"UpdateMetadataRequest from controller 9 is refused: it is for broker epoch "
                f"{own_epoch - 1}, and this broker has {own_epoch}",
            ]
            assert brokers.running[2].services.image.controller_id == 1
            stale = LeaderAndIsrRequest(controller_epoch=controller_epoch, broker_epoch=own_epoch - 1, type=2)
            response = await brokers.ask(2, ApiKey.LEADER_AND_ISR, 7, stale)
            assert response.error_code == ErrorCode.STALE_BROKER_EPOCH

            async def allocate(via: int, broker_id: int, epoch: int) -> tuple[ErrorCode, int]:
                request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
                response = await brokers.ask(via, ApiKey.ALLOCATE_PRODUCER_IDS, 0, request)
                return ErrorCode(response.error_code), response.producer_id_len

            assert await allocate(2, 2, own_epoch) == (ErrorCode.NOT_CONTROLLER, 0)
            assert await allocate(1, 2, own_epoch - 1) == (ErrorCode.STALE_BROKER_EPOCH, 0)
            assert await allocate(1, 7, own_epoch) == (ErrorCode.BROKER_ID_NOT_REGISTERED, 0)
            assert await allocate(1, 2, own_epoch) == (ErrorCode.NONE, 1000)

    run(main)


def test_control_requests_are_served_on_the_listener_for_brokers_only(tmp_path: Path) -> None:
    settings = (
        "listeners=PLAINTEXT://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name=BROKERS",
    )

    async def main() -> None:
        async with brokers_together(tmp_path, 2, *settings) as brokers:
            await brokers.create_topic("orders", {0: [2, 1]})
            assert brokers.leader("orders") == 2
            wire = await brokers.connect(2)
            wire.send(ApiKey.UPDATE_METADATA, 8, UpdateMetadataRequest(controller_epoch=99))
            assert await wire.reader.read() == b""
            wire.writer.close()
            assert brokers.running[2].services.image.controller_id == 1

    run(main)


def test_the_controller_elects_and_reassigns_on_request_and_others_name_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with brokers_together(tmp_path, 3, "auto.leader.rebalance.enable=false") as brokers:
            await brokers.create_topic("orders", {0: [2, 1]})
            await brokers.stop(2)
            assert brokers.leader("orders") == 1
            await brokers.start(2)
            topic = ElectLeadersRequest.TopicPartitions(topic="orders", partitions=[0, 7])
            election = ElectLeadersRequest(election_type=0, topic_partitions=[topic])
            elsewhere = await brokers.ask(3, ApiKey.ELECT_LEADERS, 2, election)
            assert elsewhere.error_code == ErrorCode.NOT_CONTROLLER
            await until(lambda: set(isr_of(brokers, "orders")) == {1, 2})
            response = await brokers.ask(1, ApiKey.ELECT_LEADERS, 2, election)
            (result,) = response.replica_election_results
            codes = {row.partition_id: row.error_code for row in result.partition_result}
            assert codes == {0: ErrorCode.NONE, 7: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            assert brokers.leader("orders") == 2

            response = await brokers.ask(1, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, to_replicas([3, 1]))
            assert response.responses[0].partitions[0].error_code == ErrorCode.NONE
            await until(lambda: brokers.running[1].services.image.partition("orders", 0).replicas == (3, 1))
            await until(lambda: not (tmp_path / "broker-2" / "orders-0").exists())
            assert (tmp_path / "broker-3" / "orders-0").is_dir()
            listing = ListPartitionReassignmentsRequest(topics=None)
            response = await brokers.ask(1, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, listing)
            assert (response.error_code, response.topics) == (ErrorCode.NONE, [])

    run(main)


def test_an_election_is_answered_late_or_as_timed_out_if_the_metadata_is_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_reported = asyncio.Event()
    is_reported.set()
    apply = ControlRequestHandler.apply

    async def apply_late(self: ControlRequestHandler, request: Any) -> Any:
        if isinstance(request, UpdateMetadataRequest):
            await is_reported.wait()
        return await apply(self, request)

    async def main() -> None:
        monkeypatch.setattr(ControlRequestHandler, "apply", apply_late)
        async with brokers_together(tmp_path, 2, "auto.leader.rebalance.enable=false") as brokers:
            for name in ("late", "later"):
                await brokers.create_topic(name, {0: [2, 1]})
            await brokers.stop(2)
            await brokers.start(2)
            await until(lambda: set(isr_of(brokers, "late")) == set(isr_of(brokers, "later")) == {1, 2})

            is_reported.clear()
            assert await elected(brokers, "late", timeout_ms=50) == ErrorCode.REQUEST_TIMED_OUT
            answer = asyncio.create_task(elected(brokers, "later", timeout_ms=60_000))
            node = brokers.controller().node
            await until(lambda: node.controller.context.leadership[TopicPartition("later", 0)].leader == 2)
            assert not answer.done()
            is_reported.set()
            assert await answer == ErrorCode.NONE
            assert brokers.leader("later") == 2

    run(main)


async def elected(brokers: Brokers, topic: str, timeout_ms: int) -> int:
    """The error code of a preferred election of partition 0."""
    asked = ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[0])
    request = ElectLeadersRequest(election_type=0, topic_partitions=[asked], timeout_ms=timeout_ms)
    response = await brokers.ask(1, ApiKey.ELECT_LEADERS, 2, request)
    (result,) = response.replica_election_results
    return int(result.partition_result[0].error_code)


def isr_of(brokers: Brokers, topic: str) -> tuple[int, ...]:
    """The in-sync replicas of partition 0 as broker 1 reports them."""
    known = brokers.running[1].services.image.partition(topic, 0)
    assert known is not None
    return known.isr


def to_replicas(replicas: list[int]) -> AlterPartitionReassignmentsRequest:
    """A reassignment of partition 0 of `orders`."""
    topic = AlterPartitionReassignmentsRequest.Topics
    rows = [topic.Partitions(partition_index=0, replicas=replicas)]
    return AlterPartitionReassignmentsRequest(topics=[topic(name="orders", partitions=rows)])
