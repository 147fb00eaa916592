"""The error of a whole request as a response of its API: once at the top, or in every row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from odradek.common.error_codes import ErrorCode
from odradek.protocol.api import response_class
from odradek.protocol.api_key import ApiKey
from odradek.protocol.structs import Message


class Level(NamedTuple):
    """Rows of a response that correspond to rows of a request.

    `same`: which response field repeats which request field; "" is the row itself.
    """

    asked: str
    answered: str
    same: Mapping[str, str]


def _levels(*levels: tuple[str, str, dict[str, str]]) -> tuple[Level, ...]:
    return tuple(Level(*level) for level in levels)


_NAME = {"name": "name"}
_RESOURCES = _levels(
    (
        "resources",
        "responses",
        {"resource_type": "resource_type", "resource_name": "resource_name"},
    )
)

# For APIs that have no error at the top, or only in their newest versions. The error goes to the last level.
# DescribeLogDirs before version 3 has no field for it.
_ROWS: dict[ApiKey, tuple[Level, ...]] = {
    ApiKey.FETCH: _levels(
        ("topics", "responses", {"topic": "topic", "topic_id": "topic_id"}),
        ("partitions", "partitions", {"partition_index": "partition"}),
    ),
    ApiKey.OFFSET_FETCH: _levels(
        ("topics", "topics", _NAME), ("partition_indexes", "partitions", {"partition_index": ""})
    ),
    ApiKey.FIND_COORDINATOR: _levels(("coordinator_keys", "coordinators", {"key": ""})),
    ApiKey.PRODUCE: _levels(
        ("topic_data", "responses", {"name": "name", "topic_id": "topic_id"}),
        ("partition_data", "partition_responses", {"index": "index"}),
    ),
    ApiKey.LIST_OFFSETS: _levels(
        ("topics", "topics", _NAME), ("partitions", "partitions", {"partition_index": "partition_index"})
    ),
    ApiKey.METADATA: _levels(("topics", "topics", {"name": "name", "topic_id": "topic_id"})),
    ApiKey.OFFSET_COMMIT: _levels(
        ("topics", "topics", {"name": "name", "topic_id": "topic_id"}),
        ("partitions", "partitions", {"partition_index": "partition_index"}),
    ),
    ApiKey.DESCRIBE_GROUPS: _levels(("groups", "groups", {"group_id": ""})),
    ApiKey.CREATE_TOPICS: _levels(("topics", "topics", _NAME)),
    ApiKey.DELETE_TOPICS: _levels(("topics", "responses", {"name": "name", "topic_id": "topic_id"})),
    ApiKey.DELETE_RECORDS: _levels(
        ("topics", "topics", _NAME), ("partitions", "partitions", {"partition_index": "partition_index"})
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _levels(
        ("topics", "topics", {"topic": "topic"}), ("partitions", "partitions", {"partition": "partition"})
    ),
    ApiKey.CREATE_ACLS: _levels(("creations", "results", {})),
    ApiKey.DELETE_ACLS: _levels(("filters", "filter_results", {})),
    ApiKey.DESCRIBE_CONFIGS: (_RESOURCES[0]._replace(answered="results"),),
    ApiKey.ALTER_CONFIGS: _RESOURCES,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _RESOURCES,
    ApiKey.ELECT_LEADERS: _levels(
        ("topic_partitions", "replica_election_results", {"topic": "topic"}),
        ("partitions", "partition_result", {"partition_id": ""}),
    ),
    ApiKey.CREATE_PARTITIONS: _levels(("topics", "results", _NAME)),
    ApiKey.DELETE_GROUPS: _levels(("groups_names", "results", {"group_id": ""})),
    ApiKey.DESCRIBE_PRODUCERS: _levels(
        ("topics", "topics", _NAME), ("partition_indexes", "partitions", {"partition_index": ""})
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _levels(("topics", "topics", _NAME)),
    ApiKey.CONSUMER_GROUP_DESCRIBE: _levels(("group_ids", "groups", {"group_id": ""})),
    ApiKey.DESCRIBE_TRANSACTIONS: _levels(
        ("transactional_ids", "transaction_states", {"transactional_id": ""})
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: _levels(
        ("v3_and_below_topics", "results_by_topic_v3_and_below", _NAME),
        ("partitions", "results_by_partition", {"partition_index": ""}),
    ),
    ApiKey.WRITE_TXN_MARKERS: _levels(
        ("markers", "markers", {"producer_id": "producer_id"}),
        ("topics", "topics", _NAME),
        ("partition_indexes", "partitions", {"partition_index": ""}),
    ),
    ApiKey.TXN_OFFSET_COMMIT: _levels(
        ("topics", "topics", _NAME), ("partitions", "partitions", {"partition_index": "partition_index"})
    ),
}

# Where a range of versions has other fields.
_OTHER_ROWS: dict[ApiKey, tuple[Level, ...]] = {
    ApiKey.OFFSET_FETCH: _levels(("groups", "groups", {"group_id": "group_id"})),
    ApiKey.DELETE_TOPICS: _levels(("topic_names", "responses", {"name": ""})),
}


def error_response(api_key: ApiKey, request: Any, error_code: ErrorCode, message: str) -> Message | None:
    """The response with the error; None if the API has no field for it."""
    if api_key is ApiKey.PRODUCE and request.acks == 0:
        return None  # acks=0 has no response
    made: Any = response_class(api_key)()
    if hasattr(made, "error_code"):
        _mark(made, error_code, message)
    for levels in (_ROWS.get(api_key), _OTHER_ROWS.get(api_key)):
        if levels is not None:
            rows: list[Any] = getattr(made, levels[0].answered)
            rows += _rows(type(made), levels, request, error_code, message)
    if api_key is ApiKey.ALTER_REPLICA_LOG_DIRS:
        made.results = _moves(type(made), request, error_code)
    elif api_key not in _ROWS and not hasattr(made, "error_code"):
        return None
    response: Message = made
    return response


def _rows(
    parent: Any, levels: tuple[Level, ...], asked: Any, error_code: ErrorCode, message: str
) -> list[Any]:
    level, deeper = levels[0], levels[1:]
    row_class = getattr(parent, _class_name(level.answered))
    rows = []
    for one in getattr(asked, level.asked) or ():
        row = row_class()
        for field, source in level.same.items():
            setattr(row, field, getattr(one, source) if source else one)
        if deeper:
            setattr(row, deeper[0].answered, _rows(row_class, deeper, one, error_code, message))
        else:
            _mark(row, error_code, message)
        rows.append(row)
    return rows


def _mark(row: Any, error_code: ErrorCode, message: str) -> None:
    if hasattr(row, "partition_error_code"):
        row.partition_error_code = error_code
        return
    row.error_code = error_code
    if hasattr(row, "error_message"):
        row.error_message = message


def _class_name(field: str) -> str:
    return "".join(word.capitalize() for word in field.split("_"))


def _moves(response: Any, request: Any, error_code: ErrorCode) -> list[Any]:
    """This API has directories in the request and topics in the response."""

    def rows(partitions: Iterable[int]) -> list[Any]:
        row = response.Results.Partitions
        return [row(partition_index=index, error_code=error_code) for index in partitions]

    return [
        response.Results(topic_name=topic.name, partitions=rows(topic.partitions))
        for directory in request.dirs
        for topic in directory.topics
    ]
