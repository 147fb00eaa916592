"""Ctrl-C inside of what must not be left half done is told at its end."""

from __future__ import annotations

import signal
import threading

import pytest

from odradek.client.interrupts import InterruptsDeferred


def test_an_interrupt_is_raised_at_the_end_and_the_handler_is_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    done = []

    def work() -> None:
        with InterruptsDeferred():
            signal.raise_signal(signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_handler_of_the_users_own_is_called_at_the_end() -> None:
    order = []
    before = signal.signal(signal.SIGINT, lambda *_: order.append("handler"))
    try:
        with InterruptsDeferred():
            signal.raise_signal(signal.SIGINT)
            order.append("work")
    finally:
        signal.signal(signal.SIGINT, before)

    assert order == ["work", "handler"]


def test_an_ignored_interrupt_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with InterruptsDeferred():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_the_handler_alone() -> None:
    seen = []

    def work() -> None:
        with InterruptsDeferred():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert seen == [signal.getsignal(signal.SIGINT)]
