"""kill -9 during load, again and again: what was acknowledged is there, in order, once with idempotence.

`ODRADEK_KILL_CYCLES` says how often; 100 take three to five minutes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

import pytest

from broker.wire import WireClient, a_topic
from faults.broker_process import BrokerProcess
from faults.loads import IdempotentLoad, Load, PlainLoad, Written, read_back
from odradek.log.offline.verify.directory import verify
from odradek.log.offline.verify.finding import LogFinding
from odradek.protocol.api_key import ApiKey

CYCLES = int(os.environ.get("ODRADEK_KILL_CYCLES", "10"))
PARTITIONS = 4
KEYS = 50
SETTINGS = (
    "log.retention.check.interval.ms=200",
    "log.cleaner.backoff.ms=100",
    "replica.high.watermark.checkpoint.interval.ms=300",
    "log.flush.offset.checkpoint.interval.ms=300",
)
SMALL = {"internal_segment_bytes": "50000", "file_delete_delay_ms": "100"}
TOPICS = (
    a_topic("idempotent"),
    a_topic("spread", PARTITIONS),
    a_topic("plain", internal_segment_bytes="3000000"),
    a_topic("compacted", cleanup_policy="compact", min_cleanable_dirty_ratio="0.1", **SMALL),
    a_topic("retained", retention_bytes="100000", **SMALL),
)


@pytest.mark.slow
def test_what_was_acknowledged_survives_kill_after_kill(tmp_path):
    with BrokerProcess(tmp_path, *SETTINGS) as broker:
        create(broker, *TOPICS)
        idempotent = IdempotentLoad(broker.address, "idempotent")
        spread = IdempotentLoad(broker.address, "spread", PARTITIONS, **{"compression.type": "lz4"})
        plain = PlainLoad(broker.address, "plain")
        compacted = IdempotentLoad(broker.address, "compacted", keys=KEYS)
        retained = IdempotentLoad(broker.address, "retained")
        suffer(broker, [idempotent, spread, plain, compacted, retained])

        for load in (idempotent, spread):
            assert_everything_is_there_once(load, read_back(broker.address, load.topic, load.partitions))
        assert_acknowledged_is_there_in_order(plain, read_back(broker.address, "plain"))
        assert_last_of_each_key_is_there(compacted, read_back(broker.address, "compacted"))
        assert_rest_is_unbroken(retained, read_back(broker.address, "retained"))
        assert broker.terminate() == 0
    assert "Unexpected error in" not in broker.log()
    assert "Traceback" not in broker.log()
    assert findings(broker.data) == []


def create(broker: BrokerProcess, *topics) -> None:
    with WireClient(broker.address) as client:
        for topic in topics:
            (row,) = client.ask(ApiKey.CREATE_TOPICS, 7, topic).topics
            assert row.error_code == 0, row


def suffer(broker: BrokerProcess, loads: list[Load]) -> None:
    """Kill at random moments, some of them while the broker starts; then let the producers finish."""
    random = Random(CYCLES)
    for load in loads:
        load.start()
    try:
        for _ in range(CYCLES):
            before = [load.count for load in loads]
            time.sleep(random.uniform(0.05, 0.5))
            broker.kill()
            if random.random() < 0.25:
                broker.launch()
                time.sleep(random.uniform(0.05, 0.6))
                broker.kill()
            broker.start()
            assert all(load.failure is None for load in loads), [load.failure for load in loads]
            wait_for_progress(loads, before)
    finally:
        for load in loads:
            load.stop()


def wait_for_progress(loads: list[Load], before: list[int]) -> None:
    """A life in which nobody was served would prove nothing."""
    deadline = time.monotonic() + 60
    for load, count in zip(loads, before, strict=True):
        while load.count <= count and load.failure is None:
            assert time.monotonic() < deadline, f"{load.topic} is not served any more"
            time.sleep(0.005)


def assert_everything_is_there_once(load: IdempotentLoad, found: Written) -> None:
    for partition in range(load.partitions):
        assert found[partition] == load.acknowledged[partition], f"{load.topic}-{partition}"
        assert [value for _, value in found[partition]] == load.given[partition]


def assert_acknowledged_is_there_in_order(load: PlainLoad, found: Written) -> None:
    assert set(load.acknowledged[0]) <= set(found[0])
    place = {value: index for index, value in enumerate(load.sent)}
    order = [place[value] for _, value in found[0]]
    assert order == sorted(set(order))
    assert [offset for offset, _ in found[0]] == list(range(len(order)))


def assert_last_of_each_key_is_there(load: IdempotentLoad, found: Written) -> None:
    assert set(found[0]) <= set(load.acknowledged[0])
    assert [offset for offset, _ in found[0]] == sorted(offset for offset, _ in found[0])
    kept = {value for _, value in found[0]}
    assert kept >= set(load.given[0][-KEYS:])
    assert len(found[0]) < load.count, "nothing was compacted"


def assert_rest_is_unbroken(load: IdempotentLoad, found: Written) -> None:
    acknowledged = load.acknowledged[0]
    assert [value for _, value in acknowledged] == load.given[0]
    assert 0 < len(found[0]) < len(acknowledged), "nothing was given up"
    assert found[0] == acknowledged[-len(found[0]) :]


def findings(path: Path) -> list[LogFinding]:
    found: list[LogFinding] = []
    verify(str(path), found.append)
    return found
