from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from odradek.broker.server import BrokerServer
from odradek.broker.settings.load import load
from odradek.common.errors import ConfigError
from odradek.net.listening import ListenError
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
)

from .on_this_loop import a_broker, create_topic, run
from .test_produce_and_fetch import a_batch, a_fetch, a_produce

ON = "odradek.metrics.listener=127.0.0.1:0"


async def get(server: BrokerServer, request: bytes = b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n") -> str:
    assert server.metrics is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", server.metrics.port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer.decode()


def value(text: str, name: str, **labels: str) -> float:
    """The value of one sample."""
    for line in text.splitlines():
        found = re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line)
        if found and dict(re.findall(r'(\w+)="([^"]*)"', found[1] or "")) == labels:
            return float(found[2])
    raise AssertionError(f"{name} {labels} is not in\n{text}")


def test_the_numbers_report_what_happened(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path, ON) as (server, wire):
            await create_topic(wire, "orders")
            batch = a_batch(b"one", b"two")
            for _ in range(3):
                await wire.ask(ApiKey.PRODUCE, 9, a_produce(batch))
            await wire.ask(ApiKey.FETCH, 12, a_fetch())
            wire.send(ApiKey.FETCH, 12, a_fetch(6, max_wait_ms=20_000))
            await asyncio.sleep(0.05)

            text = await get(server)

            assert text.startswith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4")
            produce = {"api": "PRODUCE", "listener": "PLAINTEXT"}
            assert value(text, "odradek_requests_total", **produce) == 3
            assert value(text, "odradek_active_controller") == 1
            assert value(text, "odradek_offline_partitions") == 0
            assert value(text, "odradek_leader_elections_total") == 0
            assert value(text, "odradek_under_min_isr_partitions") == 0
            assert value(text, "odradek_at_min_isr_partitions") == 1
            assert value(text, "odradek_isr_shrinks_total") == 0
            assert value(text, "odradek_failed_replica_fetches_total") == 0
            assert value(text, "odradek_corrupt_replica_batches_total") == 0
            assert value(text, "odradek_request_bytes_total", **produce) > 3 * len(batch)
            assert value(text, "odradek_response_bytes_total", **produce) > 0
            assert value(text, "odradek_request_seconds_total", **produce) > 0
            assert value(text, "odradek_request_errors_total", **produce) == 0
            assert value(text, "odradek_topic_bytes_in_total", topic="orders") == 3 * len(batch)
            assert value(text, "odradek_topic_messages_in_total", topic="orders") == 6
            assert value(text, "odradek_topic_bytes_out_total", topic="orders") == 3 * len(batch)
            assert value(text, "odradek_log_size_bytes", topic="orders", partition="0") == 3 * len(batch)
            assert value(text, "odradek_high_watermark", topic="orders", partition="0") == 6
            assert value(text, "odradek_connections", listener="PLAINTEXT") == 1
            assert value(text, "odradek_purgatory_size", purgatory="fetch") == 1
            assert value(text, "odradek_leaders") == 1

    run(main)


def test_other_requests_have_an_answer_as_well(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path, ON) as (server, _):
            assert (await get(server, b"GET / HTTP/1.1\r\n\r\n")).startswith("HTTP/1.1 404 Not Found")
            assert (await get(server, b"POST /metrics HTTP/1.1\r\n\r\n")).startswith("HTTP/1.1 405")
            assert (await get(server, b"HEAD /metrics HTTP/1.1\r\n\r\n")).endswith("\r\n\r\n")
            assert await get(server, b"x" * 100_000) == ""
            assert "odradek_partitions 0.0" in await get(server)

    run(main)


def test_it_is_off_by_default_and_reports_an_address_in_use(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path / "first", ON) as (first, _):
            assert first.metrics is not None
            taken = f"odradek.metrics.listener=127.0.0.1:{first.metrics.port}"
            with pytest.raises(ListenError, match="another process has that port"):
                async with a_broker(tmp_path / "second", taken):
                    pass
        async with a_broker(tmp_path / "first") as (again, _):
            assert again.metrics is None

    run(main)


@pytest.mark.parametrize("text", ["9308", "127.0.0.1", "http://127.0.0.1:9308", "127.0.0.1:x"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="host:port, such as"):
        load(None, [f"odradek.metrics.listener={text}"])


def test_other_machines_read_the_numbers_only_by_the_explicit_word() -> None:
    everywhere = "odradek.metrics.listener=0.0.0.0:9308"
    with pytest.raises(ConfigError, match="without authentication"):
        load(None, [everywhere])
    assert load(None, [everywhere, "odradek.allow.unauthenticated=true"]).config.metrics_endpoint is not None


def test_open_and_ended_transactions_are_counted(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path, ON, "transaction.state.log.num.partitions=1") as (server, wire):
            await create_topic(wire, "orders")
            await wire.ask(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest(key="t", key_type=1))
            init = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
            while (answer := await wire.ask(ApiKey.INIT_PRODUCER_ID, 5, init)).error_code:
                pass
            topics = AddPartitionsToTxnRequest.V3AndBelowTopics(name="orders", partitions=[0])
            added = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="t",
                v3_and_below_producer_id=answer.producer_id,
                v3_and_below_producer_epoch=answer.producer_epoch,
                v3_and_below_topics=[topics],
            )
            await wire.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, added)
            text = await get(server)
            assert value(text, "odradek_open_transactions") == 1
            assert 0 <= value(text, "odradek_oldest_transaction_seconds") < 60
            assert value(text, "odradek_transactions_ended_total", outcome="commit") == 0

            end = EndTxnRequest(
                transactional_id="t",
                producer_id=answer.producer_id,
                producer_epoch=answer.producer_epoch,
                committed=True,
            )
            await wire.ask(ApiKey.END_TXN, 4, end)
            while value(text := await get(server), "odradek_transaction_markers_waiting"):
                pass
            assert value(text, "odradek_open_transactions") == 0
            assert value(text, "odradek_transactions_ended_total", outcome="commit") == 1
            assert value(text, "odradek_transactions_ended_total", outcome="abort") == 0

    run(main)
