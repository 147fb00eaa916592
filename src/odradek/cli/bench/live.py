"""LiveProgress of a run on standard error: a live line at a terminal, otherwise periodic lines."""

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


class LiveProgress(NamedTuple):
    """The number of records done so far, and a note."""

    done: int
    note: str = ""


Look = Callable[[], LiveProgress]


@dataclass(slots=True)
class Meter:
    """Computes the rate since the previous line. The run has `total` records of `record_size` bytes."""

    total: int
    record_size: int
    last_s: float
    last_done: int = 0

    def line(self, progress: LiveProgress, now_s: float) -> str:
        """One line with the rate since the previous line."""
        elapsed_s = max(now_s - self.last_s, 1e-9)
        rate = (progress.done - self.last_done) / elapsed_s
        self.last_s, self.last_done = now_s, progress.done
        mb = rate * self.record_size / MEGABYTE
        note = f", {progress.note}" if progress.note else ""
        return f"{progress.done:,} of {self.total:,} records, {rate:,.0f} records/sec ({mb:.2f} MB/sec){note}"


@contextmanager
def live_progress(title: str, meter: Meter, interval_ms: int, look: Look) -> Iterator[None]:
    """Show the progress that `look` returns within this context; `look` is called on another thread."""
    showing = _at_terminal if sys.stderr.isatty() else _in_lines
    with showing(title, meter, interval_ms, look):
        yield


@contextmanager
def _at_terminal(title: str, meter: Meter, _: int, look: Look) -> Iterator[None]:
    # Importing rich takes as long as importing the rest.
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

    def report() -> None:
        while not ended.wait(interval_ms / 1000):
            click.echo(f"{title}: {meter.line(look(), time.monotonic())}", err=True)

    reporter = threading.Thread(target=report, name="odradek-bench-progress")
    reporter.start()
    try:
        yield
    finally:
        ended.set()
        reporter.join()
