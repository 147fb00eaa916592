"""How a run is going, on standard error: a line that changes at a terminal, else lines now and then."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from rich.console import RenderableType

REFRESHES_PER_SECOND = 4
BAR_WIDTH = 24
MEGABYTE = 1024 * 1024


class Progress(NamedTuple):
    """What a run has done so far, and what else it has to tell."""

    done: int
    note: str = ""


Look = Callable[[], Progress]


@dataclass(slots=True)
class Meter:
    """The rate since the last time that somebody asked. `total` records of `record_size` bytes are wanted."""

    total: int
    record_size: int
    last_s: float
    last_done: int = 0

    def line(self, progress: Progress, now_s: float) -> str:
        """One line about the time since the last one."""
        elapsed_s = max(now_s - self.last_s, 1e-9)
        rate = (progress.done - self.last_done) / elapsed_s
        self.last_s, self.last_done = now_s, progress.done
        mb = rate * self.record_size / MEGABYTE
        note = f", {progress.note}" if progress.note else ""
        return f"{progress.done:,} of {self.total:,} records, {rate:,.0f} records/sec ({mb:.2f} MB/sec){note}"


@contextmanager
def live_progress(title: str, meter: Meter, interval_ms: int, look: Look) -> Iterator[None]:
    """Tell what `look` sees while this lasts; `look` is called on another thread."""
    showing = _at_terminal if sys.stderr.isatty() else _in_lines
    with showing(title, meter, interval_ms, look):
        yield


@contextmanager
def _at_terminal(title: str, meter: Meter, _: int, look: Look) -> Iterator[None]:
    # rich takes as long to import as the rest of us.
    from rich.console import Console  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415
    from rich.progress_bar import ProgressBar  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    def shown() -> RenderableType:
        progress = look()
        grid = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=max(1, meter.total), completed=progress.done, width=BAR_WIDTH)
        grid.add_row(title, bar, meter.line(progress, time.monotonic()))
        return grid

    console = Console(stderr=True, highlight=False)
    with Live(get_renderable=shown, console=console, refresh_per_second=REFRESHES_PER_SECOND, transient=True):
        yield


@contextmanager
def _in_lines(title: str, meter: Meter, interval_ms: int, look: Look) -> Iterator[None]:
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(interval_ms / 1000):
            click.echo(f"{title}: {meter.line(look(), time.monotonic())}", err=True)

    teller = threading.Thread(target=tell, name="odradek-bench-progress")
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
