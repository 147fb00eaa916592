"""What a user can get wrong about exactly once: one clear sentence, and nothing is committed by halves."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from client.eventually import eventually
from compat.clients.face import Record
from compat.clients.librdkafka import Librdkafka
from odradek.client.admin.admin import Admin
from odradek.client.admin.base import require
from odradek.common.acls import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from odradek.common.ids import TopicPartition
from odradek.spark import exactly_once
from odradek.spark.errors import sentence_of
from odradek.spark.pipeline.driver.failures import failure_of
from odradek.spark.transactions import hooks
from odradek.spark.transactions.errors import TransactionFailed
from odradek.testing import Cluster
from spark.kills.hook_server import HookServer
from spark.transactions import test_data_source as data_source
from spark.transactions import test_foreach_batch as foreach_batch
from spark.transactions.test_foreach_batch import committed_values, sink
from spark.transactions.test_query_transactions import (
    a_driver,
    micro_batch,
    rows,
    wait_until_aborted,
    write,
    write_batch,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECORDS = [Record(b"%d" % number) for number in range(60)]
OLD_COPY = "the checkpoint of '{}' is at micro-batch 1, but another micro-batch of that number is committed"


def run_form(form: str, spark: Any, bootstrap: str, topic: str, checkpoint: Any) -> Any:
    """From the topic's source into the topic; the error if the query failed."""
    if form == "data source":
        return data_source.run(spark, bootstrap, topic, checkpoint)
    function = exactly_once(sink(bootstrap, topic=topic))
    return foreach_batch.run(spark, bootstrap, f"{topic}-source", topic, checkpoint, function)


FORMS = ["foreachBatch", "data source"]


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, librdkafka: Any, topic: str) -> str:
    """The way to write, and its topics."""
    librdkafka.create_topic(f"{topic}-source")
    librdkafka.create_topic(topic)
    librdkafka.produce(f"{topic}-source", RECORDS[:20])
    return str(request.param)


def test_an_old_copy_of_a_checkpoint_is_refused(form, spark, bootstrap, librdkafka, topic, tmp_path):
    """Its next micro-batch has the number of one that is committed, and other rows."""
    assert run_form(form, spark, bootstrap, topic, tmp_path / "used") is None
    shutil.copytree(tmp_path / "used", tmp_path / "copy")
    for last, checkpoint in ((40, "used"), (60, "copy")):
        librdkafka.produce(f"{topic}-source", RECORDS[last - 20 : last])
        error = run_form(form, spark, bootstrap, topic, tmp_path / checkpoint)
        assert (error is None) == (checkpoint == "used")
    assert sentence_of(error).startswith(OLD_COPY.format(topic))
    assert len(committed_values(spark, bootstrap, topic)) == 40


def test_a_name_belongs_to_one_checkpoint_by_the_data_source(spark, bootstrap, librdkafka, topic, tmp_path):
    librdkafka.create_topic(f"{topic}-source")
    librdkafka.create_topic(topic)
    librdkafka.produce(f"{topic}-source", RECORDS)
    assert data_source.run(spark, bootstrap, topic, tmp_path / "one") is None
    error = data_source.run(spark, bootstrap, topic, tmp_path / "two")
    assert sentence_of(error).startswith(f"the name '{topic}' belongs to a query with another checkpoint")
    assert len(committed_values(spark, bootstrap, topic)) == 60


def test_a_second_driver_fences_the_first_which_says_so_and_stops(
    spark, bootstrap, librdkafka, topic, tmp_path
):
    librdkafka.create_topic(f"{topic}-source")
    librdkafka.create_topic(topic)
    librdkafka.produce(f"{topic}-source", RECORDS)

    def process(batch: DataFrame, write_rows: Any) -> None:
        write_rows(batch)
        with a_driver(bootstrap, topic) as second:
            write_batch(second, bootstrap, 0)

    function = exactly_once(sink(bootstrap, topic=topic), process)
    error = foreach_batch.run(spark, bootstrap, f"{topic}-source", topic, tmp_path, function)
    assert sentence_of(error).startswith(f"another driver has begun under the name '{topic}' and has fenced")
    assert failure_of(error).is_permanent
    assert committed_values(spark, bootstrap, topic) == [b"row"]


def test_a_transaction_shorter_than_its_micro_batch_is_told(form, spark, bootstrap, topic, tmp_path):
    options = {"kafka.transaction.timeout.ms": "100"}

    def process(batch: DataFrame, write_rows: Any) -> None:
        write_rows(batch)
        wait_until_aborted(bootstrap, topic)

    def hold_the_end(point: str, _: int) -> None:
        if point == hooks.BEFORE_END:
            wait_until_aborted(bootstrap, topic)

    if form == "foreachBatch":
        function = exactly_once(sink(bootstrap, topic=topic, **options), process)
        error = foreach_batch.run(spark, bootstrap, f"{topic}-source", topic, tmp_path, function)
    else:
        with HookServer(hold_the_end) as server:
            spark.dataSource.register(hooked_source(server.address))
            error = data_source.run(spark, bootstrap, topic, tmp_path, sink="hooked", **options)
            assert not server.errors
    assert "and the brokers abort it after 100 ms: raise kafka.transaction.timeout.ms" in sentence_of(error)
    assert committed_values(spark, bootstrap, topic) == []
    with Admin(bootstrap_servers=bootstrap) as admin:
        assert admin.list_group_offsets(topic) == {}


def hooked_source(address: str) -> type:
    """Our data source, whose commits stop at the hooks; local, as a worker cannot import the tests."""
    from odradek.spark.datasource import OdradekSource
    from odradek.spark.sink.stream import StreamWriter

    variable = hooks.VARIABLE

    class Writer(StreamWriter):
        def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803
            import os

            os.environ[variable] = address
            try:
                super().commit(messages, batchId)
            finally:
                del os.environ[variable]

    class Hooked(OdradekSource):
        @classmethod
        def name(cls) -> str:
            return "hooked"

        def streamWriter(self, schema: Any, overwrite: bool) -> StreamWriter:  # noqa: N802
            return Writer(super().streamWriter(schema, overwrite).delivery)

    return Hooked


def test_a_source_that_is_gone_leaves_the_marker_with_the_rows(bootstrap, librdkafka, topic):
    librdkafka.create_topic(topic)
    with a_driver(bootstrap, topic) as driver:
        producer = driver.begin(micro_batch(0))
        assert producer is not None
        driver.commit(micro_batch(0), write(bootstrap, topic, producer), {TopicPartition("gone", 0): 7})
    with a_driver(bootstrap, topic) as again:
        assert again.begin(micro_batch(0)) is None
    assert rows(bootstrap, topic) == ["row"]


STRICT = {
    "auto.create.topics.enable": "false",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def strict() -> Iterator[str]:
    """A broker that obeys ACLs and creates no topic by itself."""
    with Cluster(STRICT, process=True) as cluster:
        yield cluster.bootstrap


@pytest.mark.parametrize("form", FORMS)
def test_a_target_that_is_gone_is_named_and_the_micro_batch_is_not_marked(
    form, spark, strict, topic, tmp_path
):
    librdkafka = Librdkafka(strict)
    first, second = f"{topic}-first", f"{topic}-second"
    for name in (f"{topic}-source", first, second):
        librdkafka.create_topic(name)
    librdkafka.produce(f"{topic}-source", RECORDS)
    librdkafka.delete_topic(second)
    impatient = {"kafka.max.block.ms": "2000"}

    def process(batch: DataFrame, write_rows: Any) -> None:
        write_rows(batch, topic=first)
        write_rows(batch, topic=second)

    if form == "foreachBatch":
        function = exactly_once(sink(strict, **impatient), process)
        error = foreach_batch.run(spark, strict, f"{topic}-source", topic, tmp_path, function)
    else:
        reader = spark.readStream.format("odradek").option("kafka.bootstrap.servers", strict)
        read = reader.option("subscribe", f"{topic}-source").option("startingOffsets", "earliest").load()
        both = read.selectExpr("value", f"explode(array('{first}', '{second}')) AS topic")
        error = data_source.run(spark, strict, topic, tmp_path, both, **impatient)
    assert sentence_of(error).startswith(f"cannot write into topic '{second}':")
    assert committed_values(spark, strict, first) == []
    with Admin(bootstrap_servers=strict) as admin:
        assert admin.list_group_offsets(topic) == {}


@pytest.mark.parametrize(
    ("kind", "operation", "sentence"),
    [
        (ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE, "no permission for the transactional id"),
        (ResourceType.GROUP, AclOperation.READ, "no permission for the group"),
    ],
)
def test_a_missing_permission_is_named(strict, topic, kind, operation, sentence):
    with Admin(bootstrap_servers=strict) as admin:
        admin.create_topic(topic)
        denied = AccessControlEntry("User:ANONYMOUS", "*", operation, AclPermissionType.DENY)
        binding = AclBinding(ResourcePattern(kind, topic), denied)
        require(admin.create_acls([binding])[binding])
        eventually(lambda: binding in set(admin.describe_acls()))
        with a_driver(strict, topic) as driver:
            with pytest.raises(TransactionFailed, match=sentence):
                write_batch(driver, strict, 0)
            driver.abort()
        admin.delete_acls([AclBindingFilter(ResourcePatternFilter(kind, topic))])
        eventually(lambda: binding not in set(admin.describe_acls()))
        assert admin.list_group_offsets(topic) == {}
    assert rows(strict, topic) == []
