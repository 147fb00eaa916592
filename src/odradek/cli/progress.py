"""A progress bar on standard error for reading large files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], None]

SHOWN_FROM_BYTES = 64 * 1024 * 1024


@contextmanager
def progress_bar(title: str, total_bytes: int) -> Iterator[Advance]:
    """A function to call with bytes done; no bar without a terminal or for small files."""
    if total_bytes < SHOWN_FROM_BYTES or not sys.stderr.isatty():
        yield _ignore
        return
    # Importing rich takes as long as importing the rest.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total_bytes)
        yield lambda count: bar.advance(task, count)


def _ignore(_: int) -> None:
    pass
