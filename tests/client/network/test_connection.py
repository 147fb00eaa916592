from __future__ import annotations

import asyncio

import pytest

from client.scripted_broker import ScriptedBroker, api_versions, run
from odradek import __version__
from odradek.client.errors import ConnectionFailed, ConnectionLost, NotAKafkaBroker, RequestTimedOut
from odradek.client.network.connecting import connect
from odradek.client.network.connection import BrokerConnection
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response
from odradek.protocol.messages import (
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from odradek.protocol.produce_template import ProduceTemplate
from odradek.protocol.structs import Message


async def connected(broker: ScriptedBroker, request_timeout_ms: int = 20_000) -> BrokerConnection:
    return await connect(
        "127.0.0.1",
        broker.port,
        client_id="test",
        request_timeout_ms=request_timeout_ms,
        setup_timeout_ms=20_000,
    )


def test_a_connection_sends_its_name_and_learns_the_versions():
    async def scenario() -> None:
        async with ScriptedBroker() as broker:
            connection = await connected(broker)
            _, version, hello = broker.asked[0]
            assert (version, hello.client_software_name, hello.client_software_version) == (
                4,
                "odradek",
                __version__,
            )
            assert connection.versions.best(ApiKey.METADATA) == 13
            await connection.close()

    run(scenario())


def test_an_older_broker_is_asked_again_in_its_own_version():
    async def scenario() -> None:
        async with ScriptedBroker() as broker:
            row = ApiVersionsResponse.ApiKeys(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=2)
            refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[row])
            raw = refusal.encode(0)
            frame = (len(raw) + 4).to_bytes(4, "big") + (1).to_bytes(4, "big") + raw

            def say(_: Message) -> Message | bytes:
                return frame if len(broker.asked) == 1 else api_versions()

            broker.say[ApiKey.API_VERSIONS] = say
            connection = await connected(broker)
            assert [version for _, version, _ in broker.asked] == [4, 2]
            assert connection.versions.serves(ApiKey.METADATA)
            await connection.close()

    run(scenario())


def test_a_batch_of_another_thread_goes_only_where_nothing_else_is_on_its_way():
    template = ProduceTemplate(
        13, "tests", acks=1, timeout_ms=1000, topic="t", topic_id=bytes(range(16)), partition=3
    )

    async def scenario() -> None:
        async with ScriptedBroker() as broker:
            broker.say[ApiKey.METADATA] = lambda _: MetadataResponse(cluster_id="c")
            broker.say[ApiKey.PRODUCE] = lambda _: ProduceResponse(throttle_time_ms=5)
            connection = await connected(broker)
            loop = asyncio.get_running_loop()
            answers = [loop.create_future() for _ in range(3)]

            def send(number: int) -> asyncio.Future[bool]:
                return loop.run_in_executor(
                    None, connection.send_if_idle, answers[number], template, b"batch"
                )

            waiting = connection.send(MetadataRequest(), 13)
            assert not await asyncio.wait_for(send(0), 20)
            await waiting
            assert await send(1)
            _, answer = decode_response(ApiKey.PRODUCE, 13, await asyncio.wait_for(answers[1], 20))
            assert answer == ProduceResponse(throttle_time_ms=5)
            (request,) = [request for key, _, request in broker.asked if key == ApiKey.PRODUCE]
            (topic,) = request.topic_data
            assert topic.partition_data == [ProduceRequest.TopicData.PartitionData(index=3, records=b"batch")]
            await connection.close()
            assert not await send(2)
            assert [answer.done() for answer in answers] == [False, True, False]

    run(scenario())


def test_many_requests_share_a_connection_and_each_gets_its_own_answer():
    async def scenario() -> None:
        async with ScriptedBroker() as broker:

            def say(request: Message) -> Message:
                (topic,) = request.topics
                return MetadataResponse(cluster_id=topic.name * 30_000)

            broker.say[ApiKey.METADATA] = say
            connection = await connected(broker)
            names = [chr(ord("a") + number) for number in range(20)]
            requests = [MetadataRequest(topics=[MetadataRequest.Topics(name=name)]) for name in names]
            answers = await asyncio.gather(
                *(connection.send_request(one, MetadataResponse) for one in requests)
            )
            assert [answer.cluster_id for answer in answers] == [name * 30_000 for name in names]
            assert connection.in_flight == 0
            await connection.close()

    run(scenario())


def test_a_cancelled_question_does_not_disturb_the_next():
    async def scenario() -> None:
        async with ScriptedBroker() as broker:
            connection = await connected(broker)
            asked = connection.send(MetadataRequest(), 13)
            asked.cancel()
            assert (
                await connection.send_request(MetadataRequest(), MetadataResponse)
            ).cluster_id == "scripted"
            await connection.close()

    run(scenario())


def test_no_answer_in_time_ends_the_connection_and_every_question_on_it():
    async def scenario() -> None:
        async with ScriptedBroker() as broker:
            never = asyncio.Event()

            async def say(_: Message) -> Message | None:
                await never.wait()
                return None

            connection = await connected(broker, request_timeout_ms=50)
            broker.say[ApiKey.METADATA] = say  # type: ignore[assignment]
            first = connection.send(MetadataRequest(), 13)
            patient = connection.send(MetadataRequest(), 13, timeout_ms=100_000)
            with pytest.raises(RequestTimedOut, match="no response to METADATA within 50 ms"):
                await first
            with pytest.raises(RequestTimedOut):
                await patient
            assert not connection.is_open
            with pytest.raises(RequestTimedOut):
                connection.send(MetadataRequest(), 13)
            never.set()
            await connection.close()

    run(scenario())


def test_a_broker_that_hangs_up_fails_what_was_asked():
    async def scenario() -> None:
        async with ScriptedBroker() as broker:
            broker.say[ApiKey.METADATA] = lambda _: None
            connection = await connected(broker)
            with pytest.raises(ConnectionLost, match="closed by the broker"):
                await connection.send_request(MetadataRequest(), MetadataResponse)
            await connection.close()

    run(scenario())


def test_a_close_fails_what_was_asked():
    async def scenario() -> None:
        async with ScriptedBroker() as broker:
            connection = await connected(broker)
            asked = connection.send(MetadataRequest(), 13)
            await connection.close()
            with pytest.raises(ConnectionLost, match="it was closed"):
                await asked

    run(scenario())


def test_a_close_that_is_cancelled_does_not_spoil_the_next():
    async def scenario() -> None:
        async with ScriptedBroker() as broker:
            connection = await connected(broker)
            closing = asyncio.create_task(connection.close())
            await asyncio.sleep(0)
            closing.cancel()
            await asyncio.wait([closing])
            assert closing.cancelled()
            await connection.close()

    run(scenario())


def test_a_web_server_is_distinguished_from_a_broker():
    async def scenario() -> None:
        async with ScriptedBroker() as broker:
            broker.say[ApiKey.API_VERSIONS] = lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n"
            with pytest.raises(NotAKafkaBroker, match="it uses HTTP"):
                await connected(broker)

    run(scenario())


def test_a_wrong_correlation_id_is_not_believed():
    async def scenario() -> None:
        async with ScriptedBroker() as broker:
            connection = await connected(broker)
            broker.say[ApiKey.METADATA] = lambda _: b"\0\0\0\4\0\0\0\x63"
            with pytest.raises(NotAKafkaBroker, match="response 99 where 2 is expected"):
                await connection.send_request(MetadataRequest(), MetadataResponse)
            await connection.close()

    run(scenario())


def test_an_unreachable_cluster_is_reported_with_the_address():
    async def scenario() -> None:
        async with ScriptedBroker() as broker:
            pass
        with pytest.raises(ConnectionFailed, match=rf"127.0.0.1:{broker.port}: the connection was refused"):
            await connected(broker)

    run(scenario())


def test_an_unknown_name_is_reported():
    async def scenario() -> None:
        with pytest.raises(ConnectionFailed, match=r"no\.such.host.invalid:9092: the name is not known"):
            await connect(
                "no.such.host.invalid",
                9092,
                client_id="",
                request_timeout_ms=1000,
                setup_timeout_ms=20_000,
            )

    run(scenario())
