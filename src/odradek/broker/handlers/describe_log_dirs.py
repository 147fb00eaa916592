"""DescribeLogDirs, API key 35: the replicas and the free space of each log directory.

Versions 0-5.  2: flexible.  3: an error for the whole response.  4: total and usable bytes.  5: cordoned.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.dispatch import handles
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.log.directories.log_directory import LogDirectory
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import DescribeLogDirsRequest, DescribeLogDirsResponse

Result = DescribeLogDirsResponse.Results
Partition = Result.Topics.Partitions
Wanted = dict[str, set[int]] | None


@handles(ApiKey.DESCRIBE_LOG_DIRS, versions=(0, 5))
def describe_log_dirs(context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Every directory, with the partitions asked for; null asks for all."""
    wanted: Wanted = None
    if request.topics is not None:
        wanted = {topic.topic: set(topic.partitions) for topic in request.topics}
    return DescribeLogDirsResponse(
        results=[
            _describe(context, directory, wanted) for directory in context.services.replicas.logs.directories
        ]
    )


def _describe(context: RequestContext, directory: LogDirectory, wanted: Wanted) -> Result:
    result = Result(log_dir=os.path.abspath(directory.path))
    if directory.failure is not None:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return result
    topics: dict[str, Result.Topics] = {}
    for (name, index), row in _rows(context, directory):
        if wanted is None or index in wanted.get(name, ()):
            topics.setdefault(name, Result.Topics(name=name)).partitions.append(row)
    result.topics = list(topics.values())
    filesystem = os.statvfs(directory.path)
    result.total_bytes = filesystem.f_frsize * filesystem.f_blocks
    result.usable_bytes = filesystem.f_frsize * filesystem.f_bavail
    return result


def _rows(context: RequestContext, directory: LogDirectory) -> Iterator[tuple[TopicPartition, Partition]]:
    """The logs that a directory serves, then the copies that are moved to it."""
    logs = context.services.replicas.logs
    for log in logs.logs_in(directory):
        lag = max(log.high_watermark - log.log_end_offset, 0)
        yield (
            log.partition,
            Partition(
                partition_index=log.partition.partition, partition_size=log.size_in_bytes, offset_lag=lag
            ),
        )
    for topic_partition, move in logs.moves.items():
        if move.directory is directory:
            yield (
                topic_partition,
                Partition(
                    partition_index=topic_partition.partition,
                    partition_size=move.size_in_bytes,
                    offset_lag=move.offset_lag,
                    is_future_key=True,
                ),
            )
