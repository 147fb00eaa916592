"""`odradek pipeline run`: runs a pipeline in the foreground, with live progress."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

import click

from odradek.cli.connecting import friendly_errors
from odradek.cli.options import UsageProblem
from odradek.cli.output import to_json
from odradek.cli.pipeline.files import file_errors, loaded

if TYPE_CHECKING:
    from odradek.spark.pipeline.running.summary import RunSummary
    from odradek.spark.pipeline.running.supervisor import Supervisor

LINE_SECONDS = 5.0
ROW_SECONDS = 1.0


@click.command("run")
@click.argument("file")
@click.option("-b", "--bootstrap-server", "bootstrap", help="Brokers, instead of those of the file.")
@click.option(
    "--master", help="Spark's master: local[2], spark://HOST:PORT, yarn, k8s://…; local[*] by default."
)
@click.option("--available-now", is_flag=True, help="Process what is there in micro-batches, then end.")
@click.option("--once", is_flag=True, help="Process what is there in one micro-batch, then end.")
@click.option("--jars", help="Jars for Spark, with commas between: Delta's, or the official connector's.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of Spark. Repeatable."
)
@click.option("--metrics", metavar="HOST:PORT", help="Serve Prometheus metrics at /metrics.")
@click.option("-o", "--output", type=click.Choice(["live", "lines", "json"]), help="live at a terminal.")
def command(
    file: str,
    bootstrap: str | None,
    master: str | None,
    available_now: bool,
    once: bool,
    jars: str | None,
    settings: tuple[str, ...],
    metrics: str | None,
    output: str | None,
) -> None:
    """Run a pipeline. Ctrl-C or SIGTERM stops it after its micro-batch, a second one at once.

    A stopped pipeline continues where it was. The exit code is 0 when it was stopped or has processed
    everything, 1 after a failure, 2 when it was refused, 130 when it was stopped at once.
    """
    from odradek.spark.pipeline.running.preflight import check_machine, check_options, check_topics  # noqa: PLC0415
    from odradek.spark.pipeline.running.supervisor import RunOptions, Supervisor  # noqa: PLC0415

    if available_now and once:
        raise UsageProblem("--available-now and --once exclude each other")
    pipeline = loaded(file, bootstrap)
    with friendly_errors(), file_errors():
        check_machine()
        check_options(pipeline)
        check_topics(pipeline)
    trigger = "available-now" if available_now else "once" if once else "always"
    pairs = (f"spark.jars={jars}", *settings) if jars else settings
    for pair in pairs:
        if "=" not in pair:
            raise UsageProblem(f"--set {pair!r} is not NAME=VALUE")
    shows_rows = any(sink.kind == "console" for sink in pipeline.sinks)
    if shows_rows and output == "live":
        raise UsageProblem("a console sink prints rows where the live view is: use -o lines or -o json")
    is_live = sys.stdout.isatty() and not shows_rows
    show = _Output(output or ("live" if is_live else "lines"))
    options = RunOptions(bootstrap, master, trigger, tuple(pairs), rows_to_stderr=output == "json")
    with friendly_errors(), file_errors():
        supervisor = Supervisor(pipeline, options, show.on_event)
        with _metrics(metrics, supervisor.summary), show.shown(supervisor), _signals(supervisor):
            code = supervisor.run()
    summary = supervisor.summary
    if code not in (0, 130) and summary.error:
        click.echo(f"Error: {summary.error}", err=True)
        if code == 1:
            click.echo(f"Spark's log is {supervisor.directory.log}.", err=True)
    elif output != "json":
        click.echo(_final_message(summary, code))
    sys.exit(code)


def _final_message(summary: RunSummary, code: int) -> str:
    rows = sum(one.rows_out for one in summary.queries.values() if not one.is_dead_letters)
    letters = f", {summary.dead_letters:,} dead letters" if summary.dead_letters else ""
    how = "stopped at once" if code else "ended"
    return f"{summary.name} {how}: {rows:,} rows written{letters}."


def _trend(event: Mapping[str, Any], summary: RunSummary) -> dict[str, Any]:
    """Whether lags grow, which a single event does not say."""
    return {"trend": summary.query(event["query"]).trends()} if event["event"] == "lag" else {}


class _Output:
    """Shows events in one of three formats. Events come from the main thread, rows of JSON from another."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._last_line_s = 0.0
        self._lock = threading.Lock()

    @contextmanager
    def shown(self, supervisor: Supervisor) -> Iterator[None]:
        """What is shown all the time: the live view at the bottom of the terminal, or a row a second."""
        if self.kind == "live":
            from odradek.spark.pipeline.running.view import TerminalView  # noqa: PLC0415

            with TerminalView(supervisor.summary):
                yield
        elif self.kind == "json":
            with self._rows(supervisor.summary):
                yield
        else:
            yield

    @contextmanager
    def _rows(self, summary: RunSummary) -> Iterator[None]:
        """A row of the whole run each second, and one at its end."""
        is_over = threading.Event()

        def write() -> None:
            self._json({"pipeline": summary.name, "event": "summary", **summary.as_row(time.monotonic())})

        def write_each_second() -> None:
            # Nobody reads any more: the main thread notices it, too, and ends the run.
            with suppress(BrokenPipeError):
                while not is_over.wait(ROW_SECONDS):
                    write()

        writer = threading.Thread(target=write_each_second, name="pipeline-rows", daemon=True)
        writer.start()
        try:
            yield
        finally:
            is_over.set()
            writer.join()
            write()

    def _json(self, row: Mapping[str, Any]) -> None:
        with self._lock:
            click.echo(to_json(row))

    def on_event(self, event: Mapping[str, Any], summary: RunSummary) -> None:
        """One event of the run."""
        if self.kind == "json":
            self._json({"pipeline": summary.name, **event, **_trend(event, summary)})
        elif self.kind == "lines":
            self._line(event, summary)

    def _line(self, event: Mapping[str, Any], summary: RunSummary) -> None:
        from odradek.spark.pipeline.running.view import line  # noqa: PLC0415

        if event["event"] == "restarting":
            click.echo(f"{summary.error}; starting again in {event['delay_s']:g} s", err=True)
            return
        now_s = time.monotonic()
        if event["event"] in ("running", "stopping") or now_s - self._last_line_s >= LINE_SECONDS:
            self._last_line_s = now_s
            click.echo(line(summary, now_s), err=True)


@contextmanager
def _signals(supervisor: Supervisor) -> Iterator[None]:
    """SIGINT and SIGTERM are requests to stop."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: supervisor.request_stop()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _metrics(address: str | None, summary: RunSummary) -> Iterator[None]:
    if address is None:
        with nullcontext():
            yield
        return
    from odradek.spark.pipeline.running.prometheus import serve  # noqa: PLC0415

    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise UsageProblem(f"--metrics {address!r} is not HOST:PORT")
    server = serve(summary, host or "127.0.0.1", int(port))
    click.echo(f"metrics: http://{host or '127.0.0.1'}:{server.server_address[1]}/metrics", err=True)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
