"""State of one's own in a pipeline file: transformWithState, which goes on in the next run."""

from __future__ import annotations

import pytest

from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from odradek.spark.pipeline.definition.errors import PipelineError

PIPELINE = '''\
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor

from odradek.spark.pipeline import Pipeline, to_parquet, topic


class Total(StatefulProcessor):
    """Adds up the amounts of a customer, and says the total after each micro-batch."""

    def init(self, handle):
        self.total = handle.getValueState("total", "amount bigint")

    def handleInputRows(self, key, rows, timerValues):
        before = self.total.get()[0] if self.total.exists() else 0
        total = before + sum(row.amount for row in rows)
        self.total.update((total,))
        yield Row(customer=key[0], total=total)

    def close(self):
        pass


def totals(orders):
    return orders.groupBy("customer").transformWithState(
        statefulProcessor=Total(),
        outputStructType="customer string, total bigint",
        outputMode="Append",
        timeMode="None",
    )


def none(orders):
    return orders.select("customer", orders.amount.alias("total"))


pipeline = Pipeline(
    "totals",
    bootstrap="{bootstrap}",
    partitions=2,
    sources=[topic("{topic}", name="orders", format="json", schema="customer string, amount bigint")],
    steps=[totals, none],
    sinks=[to_parquet("out", name="out", source="totals")],
)
'''
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


@pytest.fixture
def rocksdb(spark):
    """What the driver of a pipeline sets for its session."""
    spark.conf.set(PROVIDER, ROCKSDB)
    yield
    spark.conf.unset(PROVIDER)


@pytest.mark.long
def test_state_of_ones_own_continues_in_the_next_run(runner, rocksdb, bootstrap, topic):
    librdkafka = Librdkafka(bootstrap)
    librdkafka.create_topic(topic)
    text = PIPELINE.format(bootstrap=bootstrap, topic=topic)
    runner.write("totals.py", text)
    for rows in ([(b"ann", 1), (b"bob", 5), (b"ann", 2)], [(b"ann", 10), (b"cid", 7)]):
        values = [b'{"customer": "%s", "amount": %d}' % (name, amount) for name, amount in rows]
        librdkafka.produce(topic, [Record(value) for value in values])
        runner.run("totals.py")
    found = sorted((row.customer, row.total) for row in runner.parquet("out"))
    assert found == [("ann", 3), ("ann", 13), ("bob", 5), ("cid", 7)]
    states = [event["state_rows"] for event in runner.events if event["event"] == "progress"]
    assert states[-1] == 3

    runner.write("totals.py", text.replace('source="totals"', 'source="none"'))
    with pytest.raises(
        PipelineError, match=r"its state was kept by TransformWithState.*, and now by nothing"
    ):
        runner.run("totals.py")
