"""`odradek start`: one broker in this process, or several in processes of their own."""

from __future__ import annotations

import asyncio
import logging

import click
import uvloop

from odradek.broker.settings.load import Given, load
from odradek.cli.serving import serve

DEFAULT_DATA_DIR = "odradek-data"
DEFAULT_LISTENER = "PLAINTEXT://127.0.0.1:9092"


@click.command("start")
@click.argument("properties", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--data-dir", help=f"Directory of the log and the embedded store; ./{DEFAULT_DATA_DIR} by default."
)
@click.option(
    "--listener",
    "listeners",
    multiple=True,
    help=f"Where to listen, {DEFAULT_LISTENER} by default; port 0 picks a free one. Repeatable.",
)
@click.option("--coordination", help="The shared store: sqlite:PATH or zookeeper://host:port/chroot.")
@click.option("--broker-id", type=int, help="This broker's id.")
@click.option(
    "--brokers",
    type=click.IntRange(min=1),
    default=1,
    help="Start so many brokers, each in a process of its own: ids from 0, ports from the listener's on, "
    "data in DATA_DIR/broker-<id>.",
)
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Any setting. Repeatable.")
@click.option("--verbose", "-v", is_flag=True, help="Log more to stderr.")
def command(
    properties: str | None,
    data_dir: str | None,
    listeners: tuple[str, ...],
    coordination: str | None,
    broker_id: int | None,
    brokers: int,
    overrides: tuple[str, ...],
    verbose: bool,
) -> None:
    """Start a broker, or several; Ctrl-C or SIGTERM shuts them down cleanly.

    Each prints one line when clients are served: `ready: host:port`.
    """
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    options = [
        Given(key, str(value), option)
        for key, value, option in (
            ("log.dirs", data_dir, "--data-dir"),
            ("listeners", ",".join(listeners) if listeners else None, "--listener"),
            ("odradek.coordination", coordination, "--coordination"),
            ("broker.id", broker_id, "--broker-id"),
        )
        if value is not None
    ]
    # log.dirs has no default here, so that a file can set log.dir.
    defaults = [("log.dir", DEFAULT_DATA_DIR), ("listeners", DEFAULT_LISTENER)]
    loaded = load(properties, overrides, defaults, options)
    for warning in loaded.warnings:
        click.echo(f"Warning: {warning}", err=True)
    if brokers > 1:
        from odradek.cli.start_brokers import load_each, run_brokers  # noqa: PLC0415

        raise SystemExit(
            run_brokers(load_each(loaded.config, brokers, properties, overrides, defaults, options))
        )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(loaded.config, lambda addresses: click.echo(f"ready: {','.join(addresses)}")))
