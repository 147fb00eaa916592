"""Types of poll_path.py for its callers; the class has no parameters at run time, when it is compiled."""

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from odradek.client.background import BackgroundLoop
from odradek.client.consumer.consumer_record import ConsumerRecord
from odradek.client.consumer.engine import Engine
from odradek.client.consumer.inbox import Inbox
from odradek.client.consumer.reader import AutoCommit, Reader

Key = TypeVar("Key")
Value = TypeVar("Value")

LONGEST_SLICE_S: float

class PollPath(Generic[Key, Value]):
    _inbox: Inbox
    _reader: Reader
    _using: threading._RLock
    _background: BackgroundLoop
    _engine: Engine
    _auto_commit: AutoCommit | None
    _is_open: bool
    def __init__(self, inbox: Inbox, reader: Reader, max_poll_records: int) -> None: ...
    def poll(
        self, timeout: float = 0.0, *, max_records: int | None = None
    ) -> list[ConsumerRecord[Key, Value]]: ...
    def _poll(
        self, timeout: float, limit: int, take: Callable[[], list[Any]] | None
    ) -> list[Any] | None: ...
    def _begin_to_use(self) -> None: ...
