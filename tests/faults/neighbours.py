"""A well-behaved client beside the bad ones: it produces and reads on, and remembers how long it waited."""

from __future__ import annotations

import threading
import time

from broker.wire import WireClient, a_batch, a_fetch, a_produce, a_topic, the_row
from odradek.protocol.api_key import ApiKey

TOPIC = "neighbour"


class Neighbour:
    """A thread that produces a record and fetches it, over and over, on one connection."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.count = 0
        self.longest_seconds = 0.0
        self.failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run_and_remember)

    def __enter__(self) -> Neighbour:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(60)

    def assert_undisturbed(self, within_seconds: float) -> None:
        """It is served still, and never had to wait for longer than that since this was last asked."""
        before, deadline = self.count, time.monotonic() + 30
        while self.count <= before + 1 and self.failure is None:
            assert time.monotonic() < deadline, "the neighbour is not served any more"
            time.sleep(0.005)
        assert self.failure is None, self.failure
        longest, self.longest_seconds = self.longest_seconds, 0.0
        assert longest < within_seconds, f"the neighbour had to wait for {longest:.2f} s"

    def _run_and_remember(self) -> None:
        try:
            with WireClient(self.address) as client:
                client.ask(ApiKey.CREATE_TOPICS, 7, a_topic(TOPIC))
                while not self._stopping.is_set():
                    self._go_once_round(client)
        except BaseException as error:
            self.failure = error

    def _go_once_round(self, client: WireClient) -> None:
        started = time.monotonic()
        written = the_row(client.ask(ApiKey.PRODUCE, 9, a_produce(a_batch(b"x"), TOPIC)))
        assert written.error_code == 0, written
        read = the_row(client.ask(ApiKey.FETCH, 12, a_fetch(TOPIC, written.base_offset)))
        assert len(read.records) > 0, read
        self.longest_seconds = max(self.longest_seconds, time.monotonic() - started)
        self.count += 1
        time.sleep(0.002)
