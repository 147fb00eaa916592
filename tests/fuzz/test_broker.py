"""Mutated requests of every API: the broker answers or closes, keeps running, logs no unexpected error."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

import pytest

from broker.wire import ClosedByBroker, WireClient, a_topic
from faults.broker_process import BrokerProcess
from faults.neighbours import Neighbour
from fuzz.broker_requests import RequestMaker, choices
from odradek.protocol.api import response_class, response_header_version
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ResponseHeader

SECONDS = float(os.environ.get("ODRADEK_FUZZ_SECONDS", "25"))
SEED = os.environ.get("ODRADEK_FUZZ_SEED", "odradek")
CONTROL_ROUNDS = 30
FRAMES_PER_CONNECTION = 20
MAX_GROWTH_BYTES = 150 << 20
SIGNS_OF_A_BUG = (
    "Unexpected error in",
    "Traceback",
    "was never retrieved",
    "never awaited",
    "Exception in callback",
)


@pytest.mark.fuzz
def test_no_request_breaks_a_running_broker(tmp_path: Path) -> None:
    random = Random(SEED)
    with BrokerProcess(tmp_path) as broker, Neighbour(broker.address) as neighbour:
        maker = RequestMaker(random, make_topics(broker.address))
        apis = choices(control=False)
        send_to_all(apis, broker, maker, random)  # so that everything is loaded that ever will be
        before = broker.resident_bytes()
        deadline, rounds = time.monotonic() + SECONDS, 0
        while time.monotonic() < deadline:
            send_to_all(apis, broker, maker, random)
            rounds += 1
            assert_no_bug(broker)
        neighbour.assert_undisturbed(60)
        assert broker.resident_bytes() - before < MAX_GROWTH_BYTES
        assert broker.terminate() == 0
    assert rounds > 0
    assert_no_bug(broker)
    with BrokerProcess(tmp_path, port=broker.port) as again:
        assert again.is_ready


@pytest.mark.fuzz
def test_no_control_request_breaks_a_running_broker(tmp_path: Path) -> None:
    """Whoever may send them takes partitions from clients, so that no client is served beside."""
    random = Random(SEED)
    with BrokerProcess(tmp_path) as broker:
        maker = RequestMaker(random, make_topics(broker.address))
        for _ in range(CONTROL_ROUNDS):
            send_to_all(choices(control=True), broker, maker, random)
            assert_no_bug(broker)
        assert broker.is_running
        assert broker.terminate() == 0
    assert_no_bug(broker)
    with BrokerProcess(tmp_path, port=broker.port) as again:
        assert again.is_ready


def make_topics(address: str) -> list[bytes]:
    with WireClient(address) as client:
        requests = (
            a_topic("orders", 3),
            a_topic("compacted", cleanup_policy="compact"),
            a_topic("small", max_message_bytes="100"),
        )
        rows = [client.ask(ApiKey.CREATE_TOPICS, 7, request).topics[0] for request in requests]
    return [row.topic_id for row in rows]


def send_to_all(
    apis: list[tuple[ApiKey, int]], broker: BrokerProcess, maker: RequestMaker, random: Random
) -> None:
    """One connection for each API and version, with frames of which most are bad."""
    for api_key, version in apis:
        assert broker.is_running, broker.log()[-5000:]
        frames = [
            maker.valid(api_key, version) if random.random() < 0.3 else maker.mutated(api_key, version)
            for _ in range(FRAMES_PER_CONNECTION)
        ]
        try:
            with WireClient(broker.address, timeout_seconds=0.05) as client:
                # A valid one first, whose answer is looked at.
                client.send_bytes(maker.valid(api_key, version))
                read_answer(client, api_key, version)
                client.send_bytes(b"".join(frames))
                while True:
                    client.receive_frame()
        except (TimeoutError, ClosedByBroker, ConnectionError):
            continue


def read_answer(client: WireClient, api_key: ApiKey, version: int) -> None:
    """Every answer can be read to its end, so no null and no length is where none may be."""
    frame = client.receive_frame()
    _, start = ResponseHeader.decode(frame, response_header_version(api_key, version))
    _, end = response_class(api_key).decode(frame, version, start)
    assert end == len(frame), f"{api_key.name} v{version}: {frame.hex()}"


def assert_no_bug(broker: BrokerProcess) -> None:
    log = broker.log()
    for sign in SIGNS_OF_A_BUG:
        assert sign not in log, log[max(log.index(sign) - 500, 0) :][:5000]
