"""Connections that a loop lends to threads: one reads at a time, for all, and the loop gets them back."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from client.eventually import eventually
from odradek.client.background import BackgroundLoop
from odradek.client.reading import SharedReading, Waiter


class Line:
    """A line of bytes, each of which ends the waiting of whoever waits for it; on the loop, too."""

    def __init__(self, background: BackgroundLoop) -> None:
        self.is_lent = False
        self.is_open = True
        self.waiting: dict[int, Waiter] = {}
        self.readers: list[str] = []
        self.resumed = 0
        self._loop = background.loop
        self._near, self.far = socket.socketpair()
        self._near.setblocking(False)

    def descriptor(self) -> int:
        return self._near.fileno()

    def pause_reading(self) -> None:
        self._loop.remove_reader(self._near)

    def resume_reading(self) -> None:
        self.resumed += 1
        self._loop.add_reader(self._near, self.read_answers)

    def read_answers(self) -> bool:
        answers = os.read(self._near.fileno(), 100)
        self.readers.append(threading.current_thread().name)
        for answer in answers:
            self.waiting[answer].release()
        return b"?" not in answers

    def close(self) -> None:
        self._loop.remove_reader(self._near)
        self._near.close()
        self.far.close()


class Lender:
    """A loop in the background that reads one line, and may lend it."""

    def __init__(self, unused_s: float = 600.0, pause_s: float = 0.0) -> None:
        self.background = BackgroundLoop("test")
        self.reading, self.line = self.background.call(self._start(unused_s, pause_s))

    async def _start(self, unused_s: float, pause_s: float) -> tuple[SharedReading, Line]:
        line = Line(self.background)
        line.resume_reading()
        return SharedReading(unused_s, pause_s), line

    def wait_for(self, answer: bytes, timeout: float = 20) -> bool:
        waiter = self.line.waiting[answer[0]] = Waiter(self.reading)
        return waiter.acquire(timeout)

    def lend(self) -> None:
        self.reading.ask_for(self.line)
        eventually(lambda: self.line.is_lent)

    def take_back(self) -> None:
        self.background.call(self._take_back())

    async def _take_back(self) -> None:
        self.reading.take_back()

    def close(self) -> None:
        self.background.close(self._end())

    async def _end(self) -> None:
        self.reading.close()
        self.line.close()


@pytest.fixture
def lender() -> Iterator[Lender]:
    """One that takes back only when a test says so."""
    lender = Lender()
    yield lender
    lender.close()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


LOOP = "odradek test"


def test_the_loop_reads_for_a_thread_that_waits_until_it_lends(lender: Lender) -> None:
    waiter = lender.line.waiting[ord("a")] = Waiter(lender.reading)
    lender.line.far.sendall(b"a")
    assert waiter.acquire(20)
    assert lender.line.readers == [LOOP]


def test_what_is_lent_is_read_by_the_thread_that_waits(lender: Lender) -> None:
    lender.lend()
    lender.line.far.sendall(b"a")

    assert lender.wait_for(b"a")
    assert lender.line.readers == [threading.current_thread().name]


def test_one_thread_reads_for_all_that_wait(lender: Lender, threads: ThreadPoolExecutor) -> None:
    lender.lend()
    waits = [threads.submit(lender.wait_for, b"%c" % letter) for letter in b"abcdefgh"]
    eventually(lambda: len(lender.line.waiting) == len(waits))

    lender.line.far.sendall(b"hgfedcba")

    assert all(wait.result(20) for wait in waits)
    assert len(lender.line.readers) == 1


def test_the_loop_gets_it_back_from_a_thread_in_the_middle_of_waiting(
    lender: Lender, threads: ThreadPoolExecutor
) -> None:
    lender.lend()
    waits = threads.submit(lender.wait_for, b"a")
    eventually(lambda: lender.reading._reader is not None)

    lender.take_back()
    lender.line.far.sendall(b"a")

    assert waits.result(20)
    assert lender.line.readers == [LOOP]


def test_a_thread_that_reads_is_woken_when_its_waiting_ends_elsewhere(
    lender: Lender, threads: ThreadPoolExecutor
) -> None:
    lender.lend()
    waits = threads.submit(lender.wait_for, b"a")
    eventually(lambda: lender.reading._reader is not None)

    lender.line.waiting[ord("a")].release()

    assert waits.result(20)
    assert lender.line.readers == []


def test_after_a_time_out_the_next_wait_reads(lender: Lender) -> None:
    lender.lend()
    assert not lender.wait_for(b"a", timeout=0.01)

    lender.line.far.sendall(b"ab")

    assert lender.wait_for(b"b")


def test_what_a_thread_cannot_handle_is_left_to_the_loop(lender: Lender, threads: ThreadPoolExecutor) -> None:
    lender.lend()
    lender.line.waiting[ord("?")] = Waiter(lender.reading)
    waits = threads.submit(lender.wait_for, b"a")
    eventually(lambda: lender.reading._reader is not None)

    lender.line.far.sendall(b"?")
    eventually(lambda: not lender.line.is_lent)
    lender.line.far.sendall(b"a")

    assert waits.result(20)
    assert lender.line.readers[1:] == [LOOP]


def test_what_nobody_uses_is_taken_back() -> None:
    lender = Lender(unused_s=0.001)
    lender.reading.ask_for(lender.line)
    eventually(lambda: lender.line.resumed == 2)
    assert not lender.line.is_lent
    lender.close()


def test_nothing_is_lent_for_a_while_after_the_loop_had_to_take_it_back() -> None:
    lender = Lender(pause_s=600.0)
    lender.lend()
    lender.take_back()

    lender.reading.ask_for(lender.line)
    lender.background.call(asyncio.sleep(0))

    assert not lender.line.is_lent
    lender.close()


def test_a_closed_lender_lends_nothing(lender: Lender) -> None:
    lender.lend()

    async def close() -> None:
        lender.reading.close()

    lender.background.call(close())
    lender.reading.ask_for(lender.line)
    lender.background.call(asyncio.sleep(0))

    assert not lender.line.is_lent
    assert not lender.wait_for(b"a", timeout=0.01)


def test_threads_that_wait_and_a_loop_that_takes_back_lose_no_answer(
    lender: Lender, threads: ThreadPoolExecutor
) -> None:
    is_over = threading.Event()

    def take_back_again_and_again() -> None:
        while not is_over.is_set():
            lender.reading.ask_for(lender.line)
            time.sleep(0.0005)
            lender.take_back()

    disturber = threads.submit(take_back_again_and_again)
    try:
        for _ in range(100):
            lender.line.waiting.clear()
            waits = [threads.submit(lender.wait_for, b"%c" % letter) for letter in b"abcd"]
            eventually(lambda: len(lender.line.waiting) == 4)
            lender.line.far.sendall(b"abcd")
            assert all(wait.result(20) for wait in waits)
    finally:
        is_over.set()
    disturber.result(20)
