from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from client.scripted_broker import ScriptedBroker, api_versions, run
from odradek.client.broker_errors import InvalidTopicException, NotController, check
from odradek.client.config import ClientConfig, from_keywords
from odradek.client.coordinators import Coordinators, KeyType
from odradek.client.errors import (
    AdvertisedListenerUnreachable,
    ClientClosed,
    DeadlineExceeded,
    NoBrokersAvailable,
)
from odradek.client.network.brokers import Brokers
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    FindCoordinatorResponse,
    MetadataResponse,
)
from odradek.protocol.structs import Message


def brokers_of(*addresses: str, **settings: Any) -> Brokers:
    quick = {"retry_backoff_ms": 1, "reconnect_backoff_ms": 1}
    return Brokers(from_keywords(ClientConfig, {**quick, "bootstrap_servers": list(addresses), **settings}))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.001)


async def free_port() -> int:
    async with ScriptedBroker() as gone:
        return gone.port


def test_the_first_bootstrap_server_that_responds_names_all_brokers():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one, ScriptedBroker(2) as two:
            one.cluster = [one, two]
            brokers = brokers_of(f"127.0.0.1:{await free_port()}", one.address)
            metadata = await brokers.ensure_fresh()
            assert set(metadata.nodes) == {1, 2}
            await brokers.connection(2)
            await brokers.connection(1)
            assert (one.connections, two.connections) == (1, 1)
            await brokers.close()

    run(scenario())


def test_no_bootstrap_server_that_answers_is_reported_with_every_reason():
    async def scenario() -> None:
        port = await free_port()
        brokers = brokers_of(f"127.0.0.1:{port}", "no.such.host.invalid:1")
        with pytest.raises(NoBrokersAvailable, match=r"refused.*name is not known") as caught:
            await brokers.refresh()
        assert set(caught.value.reasons) == {f"127.0.0.1:{port}", "no.such.host.invalid:1"}
        await brokers.close()

    run(scenario())


def test_an_advertised_listener_out_of_reach_is_explained():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one:
            row = MetadataResponse.Brokers(node_id=1, host="inside.invalid", port=9092)
            one.say[ApiKey.METADATA] = lambda _: MetadataResponse(brokers=[row], controller_id=1)
            brokers = brokers_of(one.address)
            await brokers.refresh()
            with pytest.raises(AdvertisedListenerUnreachable) as caught:
                await brokers.connection(1)
            assert (
                f"cannot connect to broker 1 at inside.invalid:9092: the name is not known. The cluster was "
                f"reached through {one.address}" in str(caught.value)
            )
            assert "advertised.listeners" in str(caught.value)
            await brokers.close()

    run(scenario())


def test_a_retriable_answer_is_asked_again_with_a_fresh_view():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one, ScriptedBroker(2) as two:
            one.cluster = [one, two]
            brokers = brokers_of(one.address)
            answered_by = []

            async def attempt() -> str:
                answer = await brokers.send_to_controller(DescribeClusterRequest(), DescribeClusterResponse)
                check(answer.error_code)
                return answer.cluster_id

            def no_longer(_: Message) -> Message:
                answered_by.append(1)
                one.cluster = two.cluster = [two, one]  # the office has moved
                return DescribeClusterResponse(error_code=ErrorCode.NOT_CONTROLLER)

            one.say[ApiKey.DESCRIBE_CLUSTER] = no_longer
            two.say[ApiKey.DESCRIBE_CLUSTER] = lambda _: DescribeClusterResponse(cluster_id="done")
            assert await brokers.retry("asking", attempt) == "done"
            assert answered_by == [1]
            await brokers.close()

    run(scenario())


def test_an_error_that_does_not_pass_is_raised_at_once():
    async def scenario() -> None:
        attempts = []

        async def attempt() -> None:
            attempts.append(1)
            check(ErrorCode.INVALID_TOPIC_EXCEPTION, "bad name")

        brokers = brokers_of("127.0.0.1:1")
        with pytest.raises(InvalidTopicException, match="bad name"):
            await brokers.retry("trying", attempt)
        assert len(attempts) == 1
        await brokers.close()

    run(scenario())


def test_retries_end_with_the_time_and_name_the_last_error():
    async def scenario() -> None:
        async def attempt() -> None:
            check(ErrorCode.NOT_CONTROLLER, "not me")

        brokers = brokers_of("127.0.0.1:1")
        with pytest.raises(
            DeadlineExceeded, match="trying did not succeed within 50 ms: NotController: not me"
        ) as caught:
            await brokers.retry("trying", attempt, timeout_ms=50)
        assert isinstance(caught.value.__cause__, NotController)
        assert isinstance(caught.value, TimeoutError)
        await brokers.close()

    run(scenario())


def test_when_every_known_broker_is_gone_the_bootstrap_servers_are_asked_again():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one, ScriptedBroker(2) as two:
            brokers = brokers_of(one.address, two.address)
            await brokers.refresh()
            assert set(brokers.metadata.nodes) == {1}
            await one.stop()
            await brokers.retry("refreshing", brokers.refresh)
            assert set(brokers.metadata.nodes) == {2}
            await brokers.close()

    run(scenario())


def test_an_idle_connection_is_replaced():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one:
            brokers = brokers_of(one.address, connections_max_idle_ms=0)
            await brokers.refresh()
            first = await brokers.connection(1)
            await asyncio.sleep(0.002)
            second = await brokers.connection(1)
            assert first is not second
            assert not first.is_open
            await brokers.close()

    run(scenario())


def test_questions_at_the_same_time_share_one_connection_and_one_refresh():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one:
            brokers = brokers_of(one.address)
            await asyncio.gather(*(brokers.refresh() for _ in range(10)))
            await asyncio.gather(*(brokers.connection(1) for _ in range(10)))
            asked = [api_key for api_key, _, _ in one.asked]
            assert asked == [ApiKey.API_VERSIONS, ApiKey.METADATA]
            await brokers.close()

    run(scenario())


def test_a_closed_client_opens_nothing():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one:
            brokers = brokers_of(one.address)
            await brokers.refresh()
            await brokers.close()
            with pytest.raises(ClientClosed):
                await brokers.connection(1)
            with pytest.raises(ClientClosed):
                await brokers.refresh()

    run(scenario())


@pytest.mark.parametrize("is_bootstrap_first", [True, False])
def test_a_bootstrap_connection_that_came_while_its_broker_got_another_is_closed_too(
    is_bootstrap_first: bool,
) -> None:
    async def scenario() -> None:
        async with ScriptedBroker(1) as one:
            brokers = brokers_of(one.address)
            await brokers.refresh()
            await (await brokers.connection(1)).close()
            may_bootstrap, may_connect = asyncio.Event(), asyncio.Event()
            gates = iter([None, may_bootstrap, may_connect])

            async def answer(gate: asyncio.Event) -> Message:
                await gate.wait()
                return api_versions()

            def hang_up_first(_: Message) -> Awaitable[Message] | None:
                gate = next(gates)
                return None if gate is None else answer(gate)

            one.say[ApiKey.API_VERSIONS] = hang_up_first
            asked_before = len(one.asked)
            refreshing = asyncio.create_task(brokers.refresh())  # in vain, then by the bootstrap server
            await until(lambda: len(one.asked) == asked_before + 2)
            connecting = asyncio.create_task(brokers.connection(1))
            await until(lambda: len(one.asked) == asked_before + 3)
            order = [(may_bootstrap, refreshing), (may_connect, connecting)]
            for gate, task in order if is_bootstrap_first else reversed(order):
                gate.set()
                await task
            assert await brokers.connection(1) is connecting.result()
            await until(lambda: one.open_connections == 2)

            await brokers.close()

            await until(lambda: one.open_connections == 0)

    run(scenario())


def test_a_coordinator_is_asked_for_once_until_it_is_forgotten():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one:
            row = FindCoordinatorResponse.Coordinators(key="g", node_id=1, host="127.0.0.1", port=one.port)
            one.say[ApiKey.FIND_COORDINATOR] = lambda _: FindCoordinatorResponse(coordinators=[row])
            brokers = brokers_of(one.address)
            coordinators = Coordinators(brokers)

            def times_asked() -> int:
                return sum(api_key is ApiKey.FIND_COORDINATOR for api_key, _, _ in one.asked)

            assert await coordinators.find("g") == 1
            assert await coordinators.find("g") == 1
            assert times_asked() == 1
            coordinators.forget("g")
            assert await coordinators.find("g") == 1
            assert await coordinators.find("g", KeyType.TRANSACTION) == 1
            assert times_asked() == 3
            await brokers.close()

    run(scenario())
