"""Types of poll_path.py for its callers; the class has no parameters at run time, when it is compiled."""

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from odradek.client.network.background_loop import BackgroundLoop
from odradek.client.consumer.consumer_record import ConsumerRecord
from odradek.client.consumer.engine import ConsumerEngine
from odradek.client.consumer.fetch.fetch_buffer import FetchBuffer
from odradek.client.consumer.record_reader import AutoCommit, RecordReader

Key = TypeVar("Key")
Value = TypeVar("Value")

LONGEST_SLICE_S: float

class PollPath(Generic[Key, Value]):
    _fetch_buffer: FetchBuffer
    _reader: RecordReader
    _using: threading._RLock
    _background: BackgroundLoop
    _engine: ConsumerEngine
    _auto_commit: AutoCommit | None
    _is_open: bool
    def __init__(self, fetch_buffer: FetchBuffer, reader: RecordReader, max_poll_records: int) -> None: ...
    def poll(
        self, timeout: float = 0.0, *, max_records: int | None = None
    ) -> list[ConsumerRecord[Key, Value]]: ...
    def _poll(
        self, timeout: float, limit: int, take: Callable[[], list[Any]] | None
    ) -> list[Any] | None: ...
    def _begin_to_use(self) -> None: ...
