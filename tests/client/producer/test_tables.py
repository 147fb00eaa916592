"""Tables of every kind that people have: Arrow, polars, pandas; and what is wrong with one that cannot go."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from client.reading import read_back
from odradek import Producer
from odradek.client.producer.tables import as_arrow, table_batches
from odradek.records.errors import InvalidRecord
from odradek.records.record import Record
from odradek.testing import Cluster

NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)
NOON_MS = 1_714_996_800_000
HEADERS = [[{"key": "h", "value": b"1"}], [], [{"key": "h", "value": None}]]
COLUMNS: dict[str, list[Any]] = {
    "key": ["a", None, "c"],
    "value": ["x", None, ""],
    "headers": HEADERS,
    "timestamp": [NOON] * 3,
    "partition": [0, 2, 0],
}


@pytest.fixture(scope="module")
def producer(cluster: Cluster) -> Iterator[Producer[bytes, bytes]]:
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        yield producer


@pytest.mark.parametrize(
    "make",
    [pa.table, pa.record_batch, pl.DataFrame, pd.DataFrame],
    ids=["arrow table", "arrow batch", "polars", "pandas"],
)
def test_every_kind_of_table_arrives_whole(
    producer: Producer[bytes, bytes], cluster: Cluster, topic: str, make: Any
) -> None:
    producer.send_table(topic, make(COLUMNS)).result(30)

    found = read_back(cluster, topic)
    assert found == {
        0: [
            Record(0, NOON_MS, b"a", b"x", (("h", b"1"),)),
            Record(1, NOON_MS, b"c", b"", (("h", None),)),
        ],
        1: [],
        2: [Record(0, NOON_MS, None, None, ())],
    }


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"value": [b"x", b"y"]}),
        pl.DataFrame({"value": ["x", "y"]}, schema={"value": pl.Categorical}),
        pl.concat([pl.DataFrame({"value": ["x"]}), pl.DataFrame({"value": ["y"]})], rechunk=False),
        pl.DataFrame({"value": ["w", "x", "y"]})[1:],
        pd.DataFrame({"value": [b"x", b"y"]}),
        pd.DataFrame({"value": ["x", "y"]}, index=["one", "other"]),
        pd.DataFrame({"value": pd.Categorical(["x", "y"])}),
        pd.DataFrame({"value": pd.Series([b"x", b"y"], dtype=pd.ArrowDtype(pa.binary()))}),
        pd.DataFrame({"value": ["w", "x", "y"]})[1:],
    ],
)
def test_bytes_and_text_arrive_however_a_library_keeps_them(
    producer: Producer[bytes, bytes], cluster: Cluster, topic: str, table: Any
) -> None:
    producer.send_table(topic, table).result(30)

    values = [record.value for records in read_back(cluster, topic).values() for record in records]
    assert values == [b"x", b"y"]


@pytest.mark.parametrize("times", [[NOON.replace(tzinfo=None)], [NOON_MS], [pd.Timestamp(NOON)]])
def test_times_are_dates_or_milliseconds(
    producer: Producer[bytes, bytes], cluster: Cluster, topic: str, times: list[Any]
) -> None:
    producer.send_table(topic, pd.DataFrame({"value": ["v"], "timestamp": times})).result(30)

    (record,) = [record for records in read_back(cluster, topic).values() for record in records]
    assert record.timestamp_ms == NOON_MS


@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, pd.DataFrame])
def test_a_table_without_rows_is_done_at_once(
    producer: Producer[bytes, bytes], topic: str, make: Any
) -> None:
    delivery = producer.send_table(topic, make({"value": []}))

    assert delivery.done()
    assert delivery.result(0) == []


@pytest.mark.parametrize("nothing", [None, float("nan")])
def test_a_column_without_any_value_is_as_good_as_none(
    producer: Producer[bytes, bytes], cluster: Cluster, topic: str, nothing: Any
) -> None:
    table = pd.DataFrame({"value": ["v"], "key": [nothing], "headers": [nothing], "timestamp": [nothing]})
    producer.send_table(topic, table).result(30)

    (record,) = [record for records in read_back(cluster, topic).values() for record in records]
    assert (record.key, record.value, record.headers) == (None, b"v", ())


@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame])
def test_no_python_object_is_made_for_a_record(
    producer: Producer[bytes, bytes], topic: str, make: Any
) -> None:
    rows = 200_000
    table = make({"value": pa.array(["v"] * rows).to_pandas() if make is pd.DataFrame else ["v"] * rows})
    producer.partitions_for(topic)
    queues = producer._accumulator.topics[topic]
    tracemalloc.start()
    try:
        batches = list(table_batches(producer._accumulator, queues, as_arrow(table)))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert sum(batch.count for batch in batches) == rows
    assert peak_bytes < rows * sys.getsizeof(b"v"), "less than one bytes object for each"


@pytest.mark.parametrize(
    ("table", "error", "sentence"),
    [
        (pl.DataFrame({"v": ["x"]}), InvalidRecord, "without a column named value; it has v"),
        (pl.DataFrame({"value": [1]}), InvalidRecord, "the column value is of type int64; it must be binary"),
        (pd.DataFrame({"value": ["x"], "key": [1.5]}), InvalidRecord, "the column key is of type double"),
        (pd.DataFrame({"value": ["x"], "headers": [{"h": b"1"}]}), InvalidRecord, "a list of structs"),
        (pl.DataFrame({"value": ["x"], "timestamp": ["noon"]}), InvalidRecord, "milliseconds since 1970"),
        (pl.DataFrame({"value": ["x"], "partition": ["0"]}), InvalidRecord, "it must be integers"),
        (pl.LazyFrame({"value": ["x"]}), TypeError, "polars or a pandas DataFrame, not LazyFrame"),
        ("text", TypeError, "not str"),
        ([b"x"], TypeError, "not list"),
        (None, TypeError, "not NoneType"),
    ],
)
def test_a_wrong_table_is_explained(table: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        as_arrow(table)
