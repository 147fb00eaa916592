"""Topics that a request about offsets names, by name or by id, and whether they exist."""

from __future__ import annotations

from typing import NamedTuple

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.acls import Operation, Resource
from odradek.cluster.metadata import TopicMetadata
from odradek.common.error_codes import ErrorCode

NO_TOPIC_ID = bytes(16)


class AskedTopic(NamedTuple):
    """A topic as asked for: `metadata`, or `error` if it is unknown or the client may not describe it."""

    name: str
    topic_id: bytes
    metadata: TopicMetadata | None
    error: ErrorCode

    def error_for(self, partition: int) -> ErrorCode:
        """Why nothing can be done for that partition; NONE if it exists."""
        if self.metadata is None:
            return self.error
        return (
            ErrorCode.NONE if partition in self.metadata.partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )


def asked_topic(context: RequestContext, name: str, topic_id: bytes, operation: Operation) -> AskedTopic:
    """The topic that is named; later versions of the APIs name it by its id."""
    image = context.services.image
    if topic_id != NO_TOPIC_ID:
        metadata = image.topic_by_id(topic_id)
        if metadata is None:
            return AskedTopic("", topic_id, None, ErrorCode.UNKNOWN_TOPIC_ID)
        name = metadata.name
    if not context.is_allowed(operation, Resource.topic(name)):
        return AskedTopic(name, topic_id, None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    metadata = image.topics.get(name)
    known_id = NO_TOPIC_ID if metadata is None else metadata.topic_id
    return AskedTopic(name, known_id, metadata, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
