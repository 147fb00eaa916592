# cython: annotation_typing=False
"""The way of nearly every produce request: from its bytes to its batches in the logs to the answer's bytes.

`handlers.produce` sees all others. Ordinary is a request for partitions that this broker leads, that have no
other replica to wait for, and that any client may write to. Compiled by Cython (short_produce.pxd has the C
types), or interpreted as is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odradek.broker.handlers.produce import (
    MAX_SECONDS,
    tell_error,
    tell_place,
    too_late,
)
from odradek.broker.requests.services import Services
from odradek.broker.requests.short_ways import answers_shortly
from odradek.cluster.metadata_answers import INTERNAL_TOPICS
from odradek.common.config import LONG_MAX
from odradek.common.errors import KafkaError
from odradek.log.partition.log_appender import AppendInfo
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import encode_response
from odradek.protocol.messages import ProduceResponse
from odradek.protocol.produce_frames import TOPIC_IDS_FROM, ProduceFrame, answer_produce, read_produce
from odradek.replication.partition import Partition

try:
    import cython
except ImportError:
    from odradek.common import cython_shim as cython

if cython.compiled:
    from cython.cimports.odradek.common.c_clocks import monotonic_seconds
else:
    from odradek.common.c_clocks import monotonic_seconds

_MAX_SECONDS = MAX_SECONDS
_INTERNAL_TOPICS = INTERNAL_TOPICS

Append = tuple[Partition, memoryview]


def answer_shortly(services: Services, frame: memoryview) -> Sequence[Any] | None:
    """The parts of the answer to an ordinary request; None, and nothing has happened, for any other."""
    request = read_produce(frame)
    if request is None:
        return None
    appends: list[Append] = []
    replicas = services.replicas
    partitions: dict[Any, Partition] = replicas.partitions
    topic_names: dict[bytes, str] = replicas.topic_names
    for topic in request.topics:
        name: Any = topic.topic
        if request.version >= TOPIC_IDS_FROM:
            name = topic_names.get(name)
        if name in _INTERNAL_TOPICS:
            return None
        for index, records in topic.batches:
            partition = partitions.get((name, index))
            if partition is None or not partition.leads_alone:
                return None
            if partition.log.config.flush_messages != LONG_MAX:
                return None  # the answer may have to wait for a flush
            appends.append((partition, records))
    return _append_all(services, request, appends)


def _append_all(services: Services, request: ProduceFrame, appends: list[Append]) -> Sequence[Any]:
    outcomes: list[Any] = []
    has_errors = False
    now_ms = services.clock.now_ms()
    deadline = monotonic_seconds() + _MAX_SECONDS
    for partition, records in appends:
        try:
            if outcomes and monotonic_seconds() > deadline:
                raise too_late()
            outcomes.append(partition.append_alone(records, now_ms))
        except KafkaError as error:
            outcomes.append(error)
            has_errors = True
    if has_errors:
        return _answer_with_errors(services, request, appends, outcomes)
    return (answer_produce(request, outcomes),)


def _answer_with_errors(
    services: Services,
    request: ProduceFrame,
    appends: list[Append],
    outcomes: list[AppendInfo | KafkaError],
) -> Sequence[Any]:
    responses = []
    following = zip(appends, outcomes, strict=True)
    for topic in request.topics:
        response = ProduceResponse.Responses()
        if isinstance(topic.topic, bytes):
            response.topic_id = topic.topic
        else:
            response.name = topic.topic
        for index, _ in topic.batches:
            (partition, _), outcome = next(following)
            row = response.PartitionResponses(index=index, base_offset=-1)
            if isinstance(outcome, KafkaError):
                tell_error(services, partition.topic_partition.topic, row, outcome)
            else:
                tell_place(row, outcome)
            response.partition_responses.append(row)
        responses.append(response)
    answer = ProduceResponse(responses=responses)
    return encode_response(ApiKey.PRODUCE, request.version, request.correlation_id, answer)


answers_shortly(ApiKey.PRODUCE, answer_shortly)
