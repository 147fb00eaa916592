"""Where the jobs run: a session, a broker, a directory; and the topics that are made there."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from odradek.client.admin.admin import Admin
from odradek.client.producer.producer import Producer

SOURCE = "rows"
ORDERS = "orders"
VALUE_BYTES = 100
ROWS_AT_ONCE = 50_000
ROWS_A_BATCH = 500_000
PIPELINE_FACTOR = 5


@dataclass(frozen=True)
class Place:
    """A session, a broker, and a directory for what is written."""

    spark: Any
    bootstrap: str
    data_dir: Path
    directory: Path
    rows: int

    @property
    def orders(self) -> int:
        """The rows of the pipeline: 10 million, if the others have 2."""
        return PIPELINE_FACTOR * self.rows

    def new_topic(self) -> str:
        name = f"target-{uuid4()}"
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            admin.create_topic(name, num_partitions=4)
        return name


def fill(bootstrap: str, rows: int, partitions: int, topic: str = SOURCE) -> None:
    """Rows with keys of 1 to 5 bytes and values of 100 random ones, not compressed."""
    noise = os.urandom(1 << 20)
    values = [noise[index * 7 % 1_000_000 :][:VALUE_BYTES] for index in range(ROWS_AT_ONCE)]
    _write(bootstrap, topic, rows, partitions, values)


def fill_orders(bootstrap: str, rows: int, partitions: int) -> None:
    """Orders as JSON; the first fifty thousand come again and again."""
    orders = [
        {
            "order_id": n,
            "customer": f"customer-{n % 977}",
            "amount": n / 4,
            "at": f"2026-01-{1 + n % 28:02d}T12:00:00Z",
        }
        for n in range(ROWS_AT_ONCE)
    ]
    _write(bootstrap, ORDERS, rows, partitions, [json.dumps(order).encode() for order in orders])


def _write(bootstrap: str, topic: str, rows: int, partitions: int, values: list[bytes]) -> None:
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topic(topic, num_partitions=partitions)
    keys = [b"%d" % index for index in range(len(values))]
    table = pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
    with Producer(bootstrap_servers=bootstrap, batch_size=1 << 17, linger_ms=20) as producer:
        for begin in range(0, rows, ROWS_AT_ONCE):
            producer.send_table(topic, table.slice(0, rows - begin)).result()
