"""Duplicates, gaps and epochs after leader change, restart, retention, lost snapshots; and Kafka's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.idempotence import CAUSES, KAFKA_SETTINGS, RETENTION_SETTINGS, answers, expected
from faults.cluster.brokers import FAULT_SETTINGS, Brokers, kafka_brokers, odradek_brokers

BROKERS = 3
KNOWN = {
    "led_anew": 5,
    "stopped": 5,
    "killed": 5,
    "records_deleted": 5,
    "records_deleted_then_stopped": 0,
    "expired": 5,
    "snapshots_lost_at_a_kill": 5,
    "snapshots_lost_and_expired": 0,
}
"""How many of the last batches the broker still knows."""
KAFKA_KNOWS = KNOWN | {"stopped": 1, "killed": 1, "snapshots_lost_at_a_kill": 1}
"""A snapshot has the last batch of each producer. We read the earlier ones from the log, Kafka does not."""


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    brokers = odradek_brokers(
        tmp_path_factory.mktemp("ours"), BROKERS, **FAULT_SETTINGS, **RETENTION_SETTINGS
    )
    try:
        brokers.start_all()
        yield brokers
    finally:
        brokers.end()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    brokers = kafka_brokers(tmp_path_factory.mktemp("kafka"), BROKERS, **FAULT_SETTINGS, **KAFKA_SETTINGS)
    try:
        brokers.start_all()
        yield brokers
    finally:
        brokers.end()


@pytest.mark.slow
@pytest.mark.parametrize("cause", CAUSES)
def test_we_answer_by_what_is_still_known(ours: Brokers, cause: str) -> None:
    assert answers(ours, cause) == expected(known=KNOWN[cause])


@pytest.mark.java
@pytest.mark.long
@pytest.mark.parametrize("cause", CAUSES)
def test_kafka_answers_by_what_is_still_known(kafka: Brokers, cause: str) -> None:
    assert answers(kafka, cause) == expected(known=KAFKA_KNOWS[cause])
