"""Interceptors: called for every record that a consumer returns, and for every commit."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from odradek.client.committed_offsets import OffsetAndMetadata
from odradek.client.config import check_interceptors
from odradek.client.consumer.consumer_record import ConsumerRecord
from odradek.common.ids import TopicPartition

Key = TypeVar("Key")
Value = TypeVar("Value")

_log = logging.getLogger("odradek.consumer")


class ConsumerInterceptor(Generic[Key, Value]):
    """Called with records before they are returned, and with committed offsets. Override what you need.

    An exception of an interceptor is logged and ignored: no records are lost.
    """

    def on_consume(self, records: list[ConsumerRecord[Key, Value]]) -> list[ConsumerRecord[Key, Value]]:
        """The records to return in place of these; their positions count as read in any case."""
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """The group has committed these. Called on the consumer's own thread or loop: be quick."""


class Interceptors:
    """All interceptors of one consumer, in their order."""

    def __init__(self, given: Sequence[ConsumerInterceptor[Any, Any]]) -> None:
        check_interceptors(given, "on_consume", "on_commit")
        self._all = tuple(given)

    def consumed(self, records: list[ConsumerRecord[Any, Any]]) -> list[ConsumerRecord[Any, Any]]:
        """The records after all interceptors."""
        for interceptor in self._all:
            try:
                records = list(interceptor.on_consume(records))
            except Exception:
                _log.exception("on_consume of %r raised", interceptor)
        return records

    def committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Call all interceptors."""
        for interceptor in self._all:
            try:
                interceptor.on_commit(offsets)
            except Exception:
                _log.exception("on_commit of %r raised", interceptor)
