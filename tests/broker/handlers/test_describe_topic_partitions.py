from __future__ import annotations

from pathlib import Path

from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DescribeTopicPartitionsRequest

from ..on_this_loop import a_broker, create_topic, run


def test_a_response_has_no_more_partitions_than_the_broker_allows(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path, "max.request.partition.size.limit=2") as (_, wire):
            await create_topic(wire, "orders", partitions=3)
            request = DescribeTopicPartitionsRequest(
                topics=[DescribeTopicPartitionsRequest.Topics(name="orders")], response_partition_limit=100
            )
            response = await wire.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
            assert [row.partition_index for row in response.topics[0].partitions] == [0, 1]
            assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == ("orders", 2)

    run(main)
