from __future__ import annotations

import asyncio
from pathlib import Path

from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ApiVersionsRequest, MetadataRequest

from ..on_this_loop import a_broker, run
from ..test_produce_and_fetch import a_batch, a_produce


class Once:
    """Holds back the first client that is asked about."""

    def __init__(self, throttle_time_ms: int) -> None:
        self.left_ms = throttle_time_ms
        self.asked: list[tuple[ApiKey, str, str | None]] = []

    def throttle_time_ms(self, api_key: ApiKey, principal: str, client_id: str | None) -> int:
        self.asked.append((api_key, principal, client_id))
        now_ms, self.left_ms = self.left_ms, 0
        return now_ms


def test_a_client_beyond_its_quota_gets_a_throttle_time_and_is_not_read_until_it_is_over(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with a_broker(tmp_path) as (server, wire):
            loop = asyncio.get_running_loop()
            server.services.quotas = quotas = Once(300)
            began = loop.time()
            answer = await wire.ask(ApiKey.METADATA, 9, MetadataRequest(topics=None))
            assert answer.throttle_time_ms == 300
            answer = await wire.ask(ApiKey.API_VERSIONS, 1, ApiVersionsRequest())
            assert loop.time() - began >= 0.29
            assert answer.throttle_time_ms == 0
            assert quotas.asked[0] == (ApiKey.METADATA, "User:ANONYMOUS", "test")

    run(main)


def test_a_producer_without_acks_is_held_back_as_well(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path) as (server, wire):
            await wire.ask(
                ApiKey.METADATA, 9, MetadataRequest(topics=[MetadataRequest.Topics(name="orders")])
            )
            loop = asyncio.get_running_loop()
            server.services.quotas = Once(300)
            began = loop.time()
            wire.send(ApiKey.PRODUCE, 9, a_produce(a_batch(b"x"), acks=0))
            wire.send(ApiKey.API_VERSIONS, 1, ApiVersionsRequest())
            await wire.receive(ApiKey.API_VERSIONS, 1)
            assert loop.time() - began >= 0.29

    run(main)
