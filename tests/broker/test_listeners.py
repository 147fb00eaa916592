from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

from net.test_listening import LINUX_DOUBLES, PLACE_OF_BACKLOG
from odradek.broker.control.control_requests import ControlRequestHandler
from odradek.broker.server import BrokerServer
from odradek.broker.settings.alter import Change, Operation
from odradek.broker.settings.load import load
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import ConfigError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    ApiVersionsRequest,
    DescribeConfigsRequest,
    MetadataRequest,
    UpdateMetadataRequest,
)

from .on_this_loop import a_broker, connect, create_topic, run, unstarted_broker, until
from .test_produce_and_fetch import a_batch, a_produce, the_row
from .wire import a_fetch


def test_a_listener_for_other_machines_needs_the_explicit_word() -> None:
    with pytest.raises(ConfigError, match=r"odradek\.allow\.unauthenticated=true"):
        load(None, ["listeners=PLAINTEXT://0.0.0.0:0", "advertised.listeners=PLAINTEXT://localhost:9092"])


def test_nobody_is_answered_before_the_broker_knows_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told of a cluster without brokers, librdkafka forgets every address it had and never asks again."""

    async def main() -> None:
        async with a_broker(tmp_path) as (_, wire):
            await create_topic(wire, "orders")
        is_reported = asyncio.Event()
        apply = ControlRequestHandler.apply

        async def apply_late(self: ControlRequestHandler, request: Any) -> Any:
            if isinstance(request, UpdateMetadataRequest):
                await is_reported.wait()
            return await apply(self, request)

        monkeypatch.setattr(ControlRequestHandler, "apply", apply_late)
        server = unstarted_broker(tmp_path)
        starting = asyncio.ensure_future(server.start())
        await until(lambda: not server.addresses()[0].endswith(":0"))
        wire = await connect(server)
        topics = [MetadataRequest.Topics(name="orders")]
        asking = asyncio.ensure_future(wire.ask(ApiKey.METADATA, 12, MetadataRequest(topics=topics)))
        await asyncio.wait({asking}, timeout=0.2)
        assert not asking.done()

        is_reported.set()
        answer = await asking
        await starting
        assert [broker.node_id for broker in answer.brokers] == [0]
        assert [partition.leader_id for partition in answer.topics[0].partitions] == [0]
        fetched = await wire.ask(ApiKey.FETCH, 11, a_fetch("orders"))
        assert the_row(fetched).error_code == ErrorCode.NONE
        wire.writer.transport.abort()
        await server.stop()

    run(main)


async def change(server: BrokerServer, name: str, value: object) -> None:
    change = Change(name, Operation.SET, str(value))
    await server.services.broker_settings.change(lambda _: [change], is_default=False, validate_only=False)


def test_limits_of_connections_change_while_the_broker_runs(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path) as (server, first):
            await change(server, "max.connections.per.ip", 1)
            second = await connect(server)
            assert await second.reader.read() == b""
            await change(server, "max.connections.per.ip", 2)
            third = await connect(server)
            await third.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
            await change(server, "listener.name.plaintext.max.connections", 1)
            fourth = await connect(server)
            assert await fourth.reader.read() == b""
            await first.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
            for wire in (second, third, fourth):
                wire.writer.transport.abort()

    run(main)


def the_listening_socket(port: int) -> socket.socket:
    """The one of this process that listens there, by a descriptor of our own."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found = socket.socket(fileno=os.dup(int(name)))
            if found.getsockname()[1:] == (port,) and found.getsockopt(
                socket.SOL_SOCKET, socket.SO_ACCEPTCONN
            ):
                return found
            found.close()
    raise AssertionError(f"nobody listens on {port}")


def test_listeners_have_the_sockets_that_the_configuration_asks_for(tmp_path: Path) -> None:
    asked = ("socket.send.buffer.bytes=70000", "socket.receive.buffer.bytes=60000")

    async def main() -> None:
        async with a_broker(tmp_path, *asked) as (server, _):
            port = int(server.addresses()[0].rpartition(":")[2])
            with the_listening_socket(port) as listening:
                assert listening.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == LINUX_DOUBLES * 70_000
                assert listening.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == LINUX_DOUBLES * 60_000
                info = listening.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
                assert struct.unpack_from("=I", info, PLACE_OF_BACKLOG) == (50,)

    run(main)


def test_requests_beyond_the_queue_wait_and_are_all_answered(tmp_path: Path) -> None:
    """The store is slow: nobody is read beyond `queued.max.requests`, and all are answered in the end."""

    async def main() -> None:
        async with a_broker(tmp_path, "queued.max.requests=2") as (server, wire):
            request_limit = server.services.request_limit
            most = 0
            is_open = asyncio.Event()
            real = server.services.broker_settings.sources

            async def slowly():
                nonlocal most
                most = max(most, request_limit.open_requests)
                await is_open.wait()
                return await real()

            server.services.broker_settings.sources = slowly
            asked = DescribeConfigsRequest.Resources(resource_type=4, resource_name="0")
            request = DescribeConfigsRequest(resources=[asked])
            clients = [wire, *[await connect(server) for _ in range(3)]]
            waiting = [asyncio.create_task(one.ask(ApiKey.DESCRIBE_CONFIGS, 4, request)) for one in clients]
            await until(lambda: request_limit.is_full)
            is_open.set()
            for response in await asyncio.gather(*waiting):
                assert response.results[0].error_code == 0
            assert most == 2
            assert request_limit.open_requests == 0
            for client in clients[1:]:
                client.writer.transport.abort()

    run(main)


def test_a_request_that_waits_for_others_does_not_fill_the_queue(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path, "queued.max.requests=1") as (server, wire):
            waiting = asyncio.create_task(server.services.wait_for_topic("orders", 20_000))
            server.services.request_limit.enter(0)
            await asyncio.sleep(0)
            await create_topic(wire, "orders")
            assert await waiting
            server.services.request_limit.leave(0)
            answer = await wire.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"x")))
            assert the_row(answer).error_code == 0
            await wire.ask(ApiKey.METADATA, 9, MetadataRequest(topics=None))

    run(main)
