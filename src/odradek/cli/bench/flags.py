"""The flags that the benchmarks share, with the names of Kafka's perf tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from odradek.cli.connecting import bootstrap_option, client_settings, settings_option
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option
from odradek.cli.topic_names import complete_topic

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

DEFAULT_RECORD_SIZE = 100
DEFAULT_REPORTING_INTERVAL_MS = 5000

topic_option: Decorator = click.option(
    "--topic",
    shell_complete=complete_topic,
    help="An existing topic; by default one is created for the run and deleted afterwards.",
)
partitions_option: Decorator = click.option(
    "--partitions",
    type=click.IntRange(min=1),
    help="Partitions of the topic created for the run; 1 by default.",
)
record_size_option: Decorator = click.option(
    "--record-size",
    "--message-size-bytes",
    type=click.IntRange(min=0),
    default=DEFAULT_RECORD_SIZE,
    show_default=True,
    help="Bytes of each value.",
)
throughput_option: Decorator = click.option(
    "--throughput",
    type=float,
    default=-1,
    help="Maximum records per second; -1, the default, means no limit.",
)
acks_option: Decorator = click.option(
    "--acks",
    type=click.Choice(["0", "1", "-1", "all"]),
    default="all",
    show_default=True,
    help="Acknowledgements required for each record.",
)
compression_option: Decorator = click.option(
    "--compression",
    "--compression-codec",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="How batches are compressed.",
)
batch_size_option: Decorator = click.option(
    "--batch-size", type=click.IntRange(min=0), help="Maximum bytes of a batch; 16384 by default."
)
linger_option: Decorator = click.option(
    "--linger-ms", type=click.FloatRange(min=0), help="How long a batch waits for more records."
)
table_option: Decorator = click.option(
    "--table", "by_table", is_flag=True, help="Use Arrow tables (send_table, poll_table)."
)
interval_option: Decorator = click.option(
    "--reporting-interval",
    "interval_ms",
    type=click.IntRange(min=1),
    default=DEFAULT_REPORTING_INTERVAL_MS,
    show_default=True,
    help="Milliseconds between lines of progress if standard error is not a terminal.",
)
cluster_options: tuple[Decorator, ...] = (settings_option, bootstrap_option, output_option)


def records_option(default: int | None, help_text: str) -> Decorator:
    """The number of records; Kafka's two tools name the option differently."""
    return click.option(
        "--records",
        "--num-records",
        "--messages",
        "records",
        type=click.IntRange(min=1),
        default=default,
        show_default=default is not None,
        help=help_text,
    )


def with_options(*options: Decorator) -> Decorator:
    """Several options at once, shown in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@dataclass(frozen=True, slots=True)
class Sending:
    """How many records a run sends, their size, the rate, and the producer settings."""

    records: int
    record_size: int
    throughput: float
    by_table: bool
    settings: dict[str, Any]


def producer_settings(
    bootstrap: str,
    settings: tuple[str, ...],
    *,
    acks: str,
    compression: str,
    batch_size: int | None,
    linger_ms: float | None,
) -> dict[str, Any]:
    """Keyword arguments of a producer; -X overrides a flag."""
    given = {"acks": acks, "compression_type": compression, "batch_size": batch_size, "linger_ms": linger_ms}
    chosen = {name: value for name, value in given.items() if value is not None}
    return {"bootstrap_servers": bootstrap, **chosen, **client_settings(settings)}


def check_tables(by_table: bool) -> None:
    """UsageProblem if tables are wanted and Arrow is not installed."""
    if by_table:
        try:
            import pyarrow  # noqa: F401, PLC0415
        except ImportError:
            raise UsageProblem("--table needs Arrow: pip install 'odradek[arrow]'") from None
