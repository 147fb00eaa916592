"""Tables in and out: rows arrive as columns, beside what the record API sees."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from odradek import Consumer, Producer, TopicPartition
from odradek.records.errors import InvalidRecord
from odradek.records.kernels.hashes import murmur2, to_positive
from odradek.testing import Cluster


def read_tables(cluster: Cluster, topic: str, rows: int, **settings: Any) -> pa.Table:
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest", **settings) as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(3)])
        tables: list[pa.Table] = []
        while sum(table.num_rows for table in tables) < rows:
            tables.append(consumer.poll_table(10))
        return pa.concat_tables(tables).sort_by([("partition", "ascending"), ("offset", "ascending")])


def test_rows_come_back_as_they_went(cluster: Cluster, topic: str) -> None:
    table = pa.table(
        {
            "value": pa.array([b"a", None, b""]),
            "key": pa.array([None, b"k", b""]),
            "timestamp": pa.array([1000, 2000, 3000], pa.timestamp("ms", "UTC")),
            "partition": pa.array([2, 0, 2], pa.int32()),
        }
    )
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        delivered = producer.send_table(topic, table).result(30)
    assert sorted((one.partition, one.offset, one.record_count) for one in delivered) == [
        (0, 0, 1),
        (2, 0, 2),
    ]

    back = read_tables(cluster, topic, 3)
    assert back.column("topic").to_pylist() == [topic] * 3
    assert back.column("partition").to_pylist() == [0, 2, 2]
    assert back.column("offset").to_pylist() == [0, 0, 1]
    assert back.column("key").to_pylist() == [b"k", None, b""]
    assert back.column("value").to_pylist() == [None, b"a", b""]
    assert back.column("timestamp").cast(pa.int64()).to_pylist() == [2000, 1000, 3000]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_keys_go_where_records_with_them_would(cluster: Cluster, topic: str, codec: str) -> None:
    keys = [b"key %d" % number for number in range(20_000)]
    table = pa.table({"key": keys, "value": [b"v" * 20] * len(keys)})
    with Producer(bootstrap_servers=cluster.bootstrap, compression_type=codec) as producer:
        producer.send_table(topic, table).result(30)

    back = read_tables(cluster, topic, len(keys))
    for partition in range(3):
        mine = back.filter(pa.compute.equal(back.column("partition"), partition)).column("key").to_pylist()
        assert mine == [key for key in keys if to_positive(murmur2(key)) % 3 == partition]


def test_rows_without_key_arrive_all(cluster: Cluster, topic: str) -> None:
    table = pa.table({"value": pa.array([str(number) for number in range(50_000)])})
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        producer.send_table(topic, table).result(30)

    values = read_tables(cluster, topic, 50_000).column("value").to_pylist()
    assert sorted(map(int, values)) == list(range(50_000))


def test_records_before_a_table_stay_before_it(cluster: Cluster, topic: str) -> None:
    with Producer(
        bootstrap_servers=cluster.bootstrap, linger_ms=10_000, delivery_timeout_ms=60_000
    ) as producer:
        producer.send(topic, b"record", partition=0)
        producer.send_table(topic, pa.table({"value": [b"row"], "partition": [0]})).result(30)
        producer.flush(30)

    assert read_tables(cluster, topic, 2).column("value").to_pylist() == [b"record", b"row"]


def test_a_table_continues_where_poll_stopped_in_a_batch(cluster: Cluster, topic: str) -> None:
    with Producer(bootstrap_servers=cluster.bootstrap) as producer:
        for number in range(100):
            producer.send(topic, b"%d" % number, partition=0)
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert len(consumer.poll(10, max_records=30)) == 30
        rest: list[bytes] = []
        while len(rest) < 70:
            rest += consumer.poll_table(10).column("value").to_pylist()
        assert consumer.poll_table().num_rows == 0
        assert consumer.position(TopicPartition(topic, 0)) == 100
    assert rest == [b"%d" % number for number in range(30, 100)]


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"values": [b"v"]}, "without a column named value; it has values"),
        ({"value": [b"v"], "partition": [7]}, "3 partitions, and no 7"),
        ({"value": [b"v"], "partition": pa.array([None], pa.int32())}, "without partition"),
    ],
)
def test_a_wrong_table_is_explained(
    cluster: Cluster, topic: str, columns: dict[str, Any], sentence: str
) -> None:
    with (
        Producer(bootstrap_servers=cluster.bootstrap) as producer,
        pytest.raises(InvalidRecord, match=sentence),
    ):
        producer.send_table("wrong-tables", pa.table(columns))
