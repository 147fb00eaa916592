"""`odradek zookeeper stop`: stop the server that `start` started."""

from __future__ import annotations

from pathlib import Path

import click

from odradek.cli.output import print_done
from odradek.cli.zookeeper.server import DEFAULT_DATA_DIR, stop


@click.command("stop")
@click.option("--data-dir", type=click.Path(path_type=Path), default=DEFAULT_DATA_DIR, show_default=True)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def command(data_dir: Path, output: str) -> None:
    """Stop the server of a data directory; its data stay."""
    pid = stop(data_dir)
    print_done(output, {"pid": pid}, f"stopped: pid {pid}")
