"""Runs brokers in child processes, forked after all imports, which take nine tenths of a start.

Each child is a process group of its own: Ctrl-C at the terminal reaches the parent only. A child stops when
its parent dies, which it notices at the end of a pipe that only the parent can write to.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable

import uvloop

from odradek.broker.settings.broker_config import BrokerConfig
from odradek.cli.serving import serve
from odradek.common.errors import OdradekError

OnReady = Callable[[list[str]], None]


class Parent:
    """Forks brokers. Owned by the main thread of a process that has no other thread and no event loop."""

    def __init__(self) -> None:
        self._alive_fd, self._closed_at_death_fd = os.pipe()

    def fork(
        self, config: BrokerConfig, on_ready: OnReady, prepare: Callable[[], None] = lambda: None
    ) -> int:
        """The pid of a new broker; in the child, `prepare` is called first, `on_ready` with its addresses."""
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            os._exit(self._run(config, on_ready, prepare))
        return pid

    def _run(self, config: BrokerConfig, on_ready: OnReady, prepare: Callable[[], None]) -> int:
        """Run a broker in the child process; returns its exit code."""
        try:
            os.setpgid(0, 0)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            os.close(self._closed_at_death_fd)
            prepare()
            threading.Thread(target=self._end_with_the_parent, daemon=True).start()
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serve(config, on_ready))
        except (OdradekError, OSError) as error:
            print(f"Error: broker {config.given_broker_id}: {error}", file=sys.stderr)
            return 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
            return 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
        return 0

    def _end_with_the_parent(self) -> None:
        while os.read(self._alive_fd, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
