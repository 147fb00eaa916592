"""The controller's requests to a broker of another process, over a socket."""

from __future__ import annotations

import asyncio

import pytest

from net.serving import HOST, serve
from odradek.cluster.controller.channels import DeliveryFailed
from odradek.cluster.controller.remote_channel import RemoteChannel
from odradek.cluster.membership.brokers import Broker, Endpoint
from odradek.net.connection import Connection
from odradek.net.exchange import Exchange
from odradek.net.server import Listener
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_request, encode_response
from odradek.protocol.messages import UpdateMetadataRequest, UpdateMetadataResponse


def test_requests_have_the_version_of_kafka_and_a_lost_one_is_reported() -> None:
    seen: list[tuple[ApiKey, int, str | None]] = []

    def handle(connection: Connection, frame: memoryview, exchange: Exchange) -> None:
        start, header, _ = decode_request(bytes(frame))
        seen.append((start.api_key, start.version, header.client_id))
        answer = UpdateMetadataResponse(error_code=len(seen))
        exchange.answer(encode_response(start.api_key, start.version, start.correlation_id, answer))

    async def scenario() -> None:
        listener = Listener(handle)
        serve(listener)
        broker = Broker(3, (Endpoint("CONTROL", HOST, listener.port),))
        channel = RemoteChannel(broker, "CONTROL", "7", timeout_s=5)
        responses = [await channel.send(UpdateMetadataRequest()) for _ in range(2)]
        assert [response.error_code for response in responses] == [1, 2]
        assert seen == [(ApiKey.UPDATE_METADATA, 8, "7")] * 2
        listener.close()
        with pytest.raises(DeliveryFailed):
            await channel.send(UpdateMetadataRequest())
        await channel.close()

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_a_broker_without_the_listener_cannot_be_reached() -> None:
    async def scenario() -> None:
        channel = RemoteChannel(Broker(3, (Endpoint("CLIENTS", HOST, 1),)), "CONTROL", "7", timeout_s=5)
        with pytest.raises(DeliveryFailed, match="no listener CONTROL"):
            await channel.send(UpdateMetadataRequest())
        await channel.close()

    asyncio.run(asyncio.wait_for(scenario(), 20))
