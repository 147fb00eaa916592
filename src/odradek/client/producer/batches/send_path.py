# cython: annotation_typing=False
"""The usual path of a record, from the user's call into its batch.

Compiled by Cython (send_path.pxd has the C types), or interpreted as is. A base class of the producer, so
that nothing lies between a user's `send` and this one.
"""

from __future__ import annotations

from odradek.client.producer.batches.record_preparation import ProducerRecord


class SendPath:
    """`send`, for records of bytes; other cases are handled by `_send_general` of the subclass.

    A record that need not wait for others is sent by `_single_batch_sender`.
    """

    def __init__(self, accumulator, is_plain):
        self._accumulator = accumulator
        self._is_plain = is_plain
        self._single_batch_sender = None

    def __class_getitem__(cls, _types):
        """Written where a class inherits; it means something to type checkers only."""
        return cls

    def _send_now(self):
        self._accumulator.is_wake_due = False
        if not self._single_batch_sender.send():
            self._accumulator.wake()

    def send(
        self,
        topic,
        value=None,
        key=None,
        partition=None,
        headers=None,
        timestamp=None,
        on_delivery=None,
    ):
        """Add a record; blocks only for the first metadata of a topic, and while `buffer_memory` is full.

        `timestamp` is in milliseconds since 1970. An invalid record raises here; the result of its delivery
        goes to the future and to `on_delivery(error, metadata)`.
        """
        if self._is_plain and headers is None:
            future = self._accumulator.send(topic, value, key, partition, None, timestamp, on_delivery)
            if future is not None:
                if self._accumulator.is_wake_due:
                    self._send_now()
                return future
        return self._send_general(
            ProducerRecord(topic, value, key, partition, headers, timestamp), on_delivery
        )
