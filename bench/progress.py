"""Shows the progress of a benchmark on the terminal.

Nothing is drawn while something is measured: a thread that draws ten times a second takes the interpreter
from a client in the same process for half a millisecond each time, just as often as a p99.9 notices.
"""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

CONSOLE = Console(stderr=True)


class ProgressLine:
    """A line of progress on stderr; tables are printed to stdout."""

    def __init__(self, title: str, steps: int) -> None:
        self._progress = Progress(
            TextColumn("[bold]{task.fields[title]}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=CONSOLE,
            transient=True,
            auto_refresh=False,
        )
        self._task = self._progress.add_task("", total=steps, title=title)

    def __enter__(self) -> ProgressLine:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def begin(self, what: str) -> None:
        """Show the current step; `done` advances the bar."""
        self._progress.update(self._task, description=what, refresh=True)

    def done(self) -> None:
        self._progress.advance(self._task)
