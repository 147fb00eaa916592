"""What Spark reports of a query, as rows; lag by the ends that a source reads to."""

from __future__ import annotations

import json
from typing import Any

from odradek import Producer
from odradek.spark.pipeline.driver.progress import LagWatch, QueryWatch, lag_by_partition, progress_row


class Entry:
    """One progress in the JVM."""

    def __init__(self, progress: dict[str, Any]) -> None:
        self.progress = progress
        self.calls = 0

    def json(self) -> str:
        self.calls += 1
        return json.dumps(self.progress)


class Query:
    """A query in the JVM, which keeps its last progresses."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._jsq = self

    def lastProgress(self) -> Entry | None:  # noqa: N802 - Spark's name
        return self.entries[-1] if self.entries else None

    def recentProgress(self) -> list[Entry]:  # noqa: N802 - Spark's name
        return self.entries[-100:]

    def add(self, batch: int, *rows: int) -> None:
        sources = [{"numInputRows": count} for count in rows]
        progress = {"batchId": batch, "timestamp": f"12:{batch:02}", "numInputRows": sum(rows)}
        self.entries.append(Entry(progress | {"sources": sources}))


def test_each_progress_is_reported_once_and_read_no_more_than_twice():
    query = Query()
    watch = QueryWatch("archive", query)
    assert watch.look() == []
    seen = []
    for batch in range(50):
        query.add(batch, 10)
        if batch % 3 == 0:
            seen += [row["batch"] for row in watch.look()]
            assert watch.look() == []
    assert seen == list(range(49))
    assert max(one.calls for one in query.entries) <= 4


def test_rows_read_again_for_dead_letters_count_once():
    query = Query()
    query.add(0, 30, 12, 30)
    rows = QueryWatch("copies", query, ["dead_letters_orders"]).look()
    assert [(row["query"], row["rows_in"]) for row in rows] == [("copies", 42), ("dead_letters_orders", 0)]


def test_lag_counts_records_of_open_transactions_only_for_sources_that_read_them(
    bootstrap, librdkafka, topic
):
    librdkafka.create_topic(topic)
    with Producer(bootstrap_servers=bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"open")
        producer.flush()
        for reads_committed, lag in ((True, 0), (False, 1)):
            watch = LagWatch(bootstrap, reads_committed=reads_committed)
            assert watch.lag({f"{topic}-0": 0}) == {f"{topic}-0": lag}
            watch.close()
        producer.abort_transaction()


def test_offsets_of_sources_that_read_one_topic_name_are_kept_apart():
    sources = [
        {"endOffset": {"orders": {"0": 5, "1": 6}}},
        {"endOffset": "20"},  # of files
        {"endOffset": '{"orders": {"0": 70}}'},
        {"endOffset": {"orders": {"0": 4, "1": 7}}},  # read again for dead letters
    ]
    progress = {"batchId": 0, "timestamp": "12:00", "numInputRows": 0, "sources": sources}
    names = ["east", None, "west", "east"]
    assert progress_row("all", progress, 1, names)["offsets"] == {
        "east": {"orders-0": 4, "orders-1": 6},
        "west": {"orders-0": 70},
    }


def test_the_lag_of_a_partition_has_the_name_of_its_source_where_it_needs_one():
    read = {"east": {"orders-0": 5, "orders-1": 6}, "west": {"orders-0": 70}}
    lag = {"east": {"orders-0": 1, "orders-1": 2}, "west": {"orders-0": 3}}
    assert lag_by_partition(read, lag) == {"east/orders-0": 1, "orders-1": 2, "west/orders-0": 3}
    # The brokers in the west do not answer.
    assert lag_by_partition(read, lag | {"west": {}}) == {"east/orders-0": 1, "orders-1": 2}
