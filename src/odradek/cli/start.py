"""`odradek start`: one broker in this process, from its configuration to a clean stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal

import click
import uvloop

from odradek.broker.server import BrokerServer
from odradek.broker.settings.broker_config import BrokerConfig
from odradek.broker.settings.load import Given, load

DEFAULT_DATA_DIR = "odradek-data"
DEFAULT_LISTENER = "PLAINTEXT://127.0.0.1:9092"


@click.command("start")
@click.argument("properties", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--data-dir", help=f"Where the log and the embedded store live; ./{DEFAULT_DATA_DIR} by default."
)
@click.option(
    "--listener",
    "listeners",
    multiple=True,
    help=f"Where to listen, {DEFAULT_LISTENER} by default; port 0 picks a free one. Repeatable.",
)
@click.option("--coordination", help="The shared store: sqlite:PATH or zookeeper://host:port/chroot.")
@click.option("--broker-id", type=int, help="This broker's id.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Any setting. Repeatable.")
@click.option("--verbose", "-v", is_flag=True, help="Tell more on stderr.")
def command(
    properties: str | None,
    data_dir: str | None,
    listeners: tuple[str, ...],
    coordination: str | None,
    broker_id: int | None,
    overrides: tuple[str, ...],
    verbose: bool,
) -> None:
    """Start a broker, and stop it in order on Ctrl-C or SIGTERM.

    Prints one line when clients are served: `ready: host:port`.
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
    # log.dirs has none, so that a file that sets log.dir is heard.
    defaults = [("log.dir", DEFAULT_DATA_DIR), ("listeners", DEFAULT_LISTENER)]
    loaded = load(properties, overrides, defaults, options)
    for warning in loaded.warnings:
        click.echo(f"Warning: {warning}", err=True)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(loaded.config))


async def _serve(config: BrokerConfig) -> None:
    """Run a broker until a signal stops it; raises the error if it cannot go on, after an orderly stop."""
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_fatal(error: Exception) -> None:
        if not failed.done():
            failed.set_exception(error)

    server = BrokerServer(config, on_fatal=on_fatal)
    stopping = asyncio.ensure_future(_told_to_stop())
    starting = asyncio.ensure_future(server.start())
    await asyncio.wait((starting, stopping, failed), return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        starting.result()
        click.echo(f"ready: {','.join(server.addresses())}")
        await server.load_the_rest()
        _collect_rarely()
        await asyncio.wait((stopping, failed), return_when=asyncio.FIRST_COMPLETED)
        await server.stop()
    else:
        starting.cancel()
        await asyncio.wait((starting,))
    if failed.done():
        failed.result()


def _collect_rarely() -> None:
    """What a start has made stays, and requests leave few cycles behind, so the collector has little to find.

    At its usual pace it would look at everything again for each 700 objects of a large request.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def _told_to_stop() -> None:
    """Wait for Ctrl-C or SIGTERM. A second one is not waited for: it ends the process where it stands."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, told.set)
    await told.wait()
    for number in signals:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)
