"""Identifiers: partitions, topic ids, and the rules for topic names."""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple
from uuid import UUID

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError

MAX_TOPIC_NAME_LENGTH = 249
ZERO_UUID = UUID(int=0)

_LEGAL_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+\Z")


class TopicPartition(NamedTuple):
    """One partition of one topic; prints as its directory is called."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def topic_name_problem(name: str) -> str | None:
    """Why `name` cannot be a topic, or None when it can."""
    if not name:
        return "the empty string is not a topic name"
    if name in {".", ".."}:
        return f"{name!r} is not a topic name"
    if len(name) > MAX_TOPIC_NAME_LENGTH:
        return f"the name has {len(name)} characters, more than {MAX_TOPIC_NAME_LENGTH}"
    if not _LEGAL_TOPIC_NAME.match(name):
        return f"{name!r} holds a character other than a-z, A-Z, 0-9, '.', '_' and '-'"
    return None


def check_topic_name(name: str) -> None:
    """Raise for a name that Kafka rejects; the name becomes part of a path."""
    problem = topic_name_problem(name)
    if problem is not None:
        raise KafkaError(problem, error_code=ErrorCode.INVALID_TOPIC_EXCEPTION)


def uuid_to_text(uuid: UUID) -> str:
    """Kafka's text form of 16 bytes: URL-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(uuid.bytes).decode("ascii").rstrip("=")


def uuid_from_text(text: str) -> UUID:
    """The inverse of `uuid_to_text`; ValueError if the text is not valid."""
    try:
        raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{text!r} is not a base64 uuid") from error
    if len(raw) != 16 or len(text) != 22:
        raise ValueError(f"{text!r} does not hold 16 bytes")
    return UUID(bytes=raw)
