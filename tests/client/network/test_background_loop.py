from __future__ import annotations

import asyncio
import os
import socket
import threading

import pytest

from odradek.client.errors import CalledFromCallback, ClientClosed, ClientForked
from odradek.client.network.background_loop import BackgroundLoop


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


@pytest.fixture
def background():
    loop = BackgroundLoop("producer")
    yield loop
    loop.close()


def test_a_call_runs_on_the_loop_and_brings_its_result(background):
    assert background.call(answer(42)) == 42


def test_an_exception_reaches_the_caller(background):
    async def fail() -> None:
        raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        background.call(fail())


def test_a_closed_client_says_so(background):
    background.close()
    background.close()
    with pytest.raises(ClientClosed, match="this producer is closed; create a new one"):
        background.call(answer(1))


def test_close_runs_the_last_work_and_cancels_what_is_left(background):
    started, cancelled, last = threading.Event(), [], []

    async def forever() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    async def say_goodbye() -> None:
        last.append(True)

    background.submit(forever())
    assert started.wait(20)
    background.close(say_goodbye())
    assert (last, cancelled) == ([True], [True])


def test_a_call_from_a_callback_is_refused_instead_of_hanging(background):
    async def callback() -> None:
        background.call(answer(1))

    with pytest.raises(CalledFromCallback, match="must not wait"):
        background.call(callback())


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_use_after_a_fork_is_a_clear_error_in_the_child_and_none_in_the_parent(background):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # in the child: nothing may escape, or pytest would run twice
        try:
            background.call(answer(1))
            os.write(writing, b"no error")
        except ClientForked as error:
            os.write(writing, str(error).encode())
        finally:
            background.close()
            os._exit(0)
    os.waitpid(child, 0)
    assert (
        os.read(reading, 1000)
        == b"this producer was created before a fork; create a new one in the child process"
    )
    os.close(reading)
    os.close(writing)
    assert background.call(answer(2)) == 2


def test_a_lookup_that_nobody_waits_for_any_more_is_not_logged(background, caplog):
    for error in (socket.gaierror("no such name"), RuntimeError("a bug")):
        background.loop.call_exception_handler({"message": "never retrieved", "exception": error})

    assert "a bug" in caplog.text
    assert "no such name" not in caplog.text
