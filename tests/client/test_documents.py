"""docs/clients.md: every test that it names as proof is there, and its examples do what they say."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from odradek import Admin, AsyncConsumer, AsyncProducer, TopicPartition
from odradek.testing import Cluster

TESTS = Path(__file__).parent
DOCUMENT = (TESTS.parents[1] / "docs" / "clients.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)


def test_every_fault_that_is_described_has_its_test() -> None:
    there = {
        name for path in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    section = DOCUMENT.split("## What happens when")[1].split("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("| ") and "---" not in row]
    described = [row for row in rows if not row.startswith("| what happens ")]

    assert len(described) > 30
    for row in described:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        assert set(named) <= there, row


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_every_example_is_python_and_finds_its_imports(example: str) -> None:
    compile(example, "docs/clients.md", "exec")
    for line in example.splitlines():
        if line.startswith(("from ", "import ")):
            exec(line)


def test_the_example_of_sending_sends(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    example = next(one for one in EXAMPLES if one.startswith("from odradek import Producer"))
    exec(example.replace("localhost:9092", cluster.bootstrap), {})

    assert capsys.readouterr().out == "0\n"


def test_the_example_of_tables_reads_what_it_sent(cluster: Cluster) -> None:
    with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topic("readings", num_partitions=1)
    names: dict[str, Any] = {}
    example = next(one for one in EXAMPLES if one.startswith("import pyarrow as pa"))
    exec(example.replace("localhost:9092", cluster.bootstrap), names)

    assert names["table"].column("value").to_pylist() == [b"1", b"2"]


def test_the_example_of_a_copy_copies(cluster: Cluster) -> None:
    example = next(one for one in EXAMPLES if "async def copy" in one)
    names: dict[str, object] = {}
    begins_early = example.replace('group_id="copier"', 'group_id="copier", auto_offset_reset="earliest"')
    exec(begins_early.replace("localhost:9092", cluster.bootstrap), names)

    async def scenario() -> None:
        async with AsyncProducer(bootstrap_servers=cluster.bootstrap) as producer:
            await producer.send_and_wait("orders", b"tea", key=b"k")
        copying = asyncio.create_task(names["copy"]())  # type: ignore[operator]
        settings = {"bootstrap_servers": cluster.bootstrap, "auto_offset_reset": "earliest"}
        async with AsyncConsumer(**settings) as consumer:
            consumer.assign([TopicPartition("copies", number) for number in range(3)])
            async for record in consumer:
                assert record.value == b"tea"
                break
        copying.cancel()
        await asyncio.gather(copying, return_exceptions=True)

    asyncio.run(scenario())
