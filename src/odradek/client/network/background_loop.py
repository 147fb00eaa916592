"""A loop in a daemon thread, so that code without one can use clients that need one.

caller's thread                     the loop's thread
background.call(coroutine)   --->   runs it
result or exception          <---   done
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from odradek.client.errors import CalledFromCallback, ClientClosed, ClientError, ClientForked

Result = TypeVar("Result")


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed, asyncio's elsewhere."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class BackgroundLoop:
    """One loop in one daemon thread. Owned by a synchronous client, whose callers may be any threads.

    `owner` names that client in error messages: "producer", for example.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._pid = os.getpid()
        self._is_closed = False
        self._closing = threading.Lock()
        self.loop = new_event_loop()
        self.loop.set_exception_handler(_handle_exception)
        self._thread = threading.Thread(target=self._run, name=f"odradek {owner}", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """ClientClosed or ClientForked if this loop may not be used."""
        if self._pid != os.getpid():
            raise ClientForked(self._owner)
        if self._is_closed:
            raise ClientClosed(self._owner)

    def is_own_thread(self) -> bool:
        """Whether the caller is the loop itself, in a callback: it must not wait for the loop."""
        return threading.current_thread() is self._thread

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine on the loop; the future is for threads."""
        try:
            self.check()
        except ClientError:
            work.close()
            raise
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the loop and wait for it; Ctrl-C cancels it."""
        if self.is_own_thread():
            work.close()
            raise CalledFromCallback(self._owner)
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call_soon(self, callback: Callable[..., object], *arguments: object) -> None:
        """Run a plain function on the loop, without waiting for it."""
        self.check()
        self.loop.call_soon_threadsafe(callback, *arguments)

    def close(self, last: Coroutine[Any, Any, object] | None = None) -> None:
        """Run `last` on the loop, then end the thread; a second call does nothing.

        In a forked child there is nothing to end: thread and connections are the parent's.
        """
        if self._pid != os.getpid():
            _drop(last)
            return
        with self._closing:
            if self._is_closed:
                _drop(last)
                return
            try:
                if last is not None:
                    self.call(last)
            finally:
                self._is_closed = True
                self.loop.call_soon_threadsafe(self.loop.stop)
                self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.run_until_complete(_cancel_all(asyncio.all_tasks(self.loop)))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.close()


def _handle_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log uncaught errors, but not those of a DNS lookup that ended after its client was closed."""
    if not isinstance(context.get("exception"), socket.gaierror):
        loop.default_exception_handler(context)


async def _cancel_all(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _drop(work: Coroutine[Any, Any, object] | None) -> None:
    """Close a coroutine that will not run, to avoid Python's warning."""
    if work is not None:
        work.close()
