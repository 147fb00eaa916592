"""`odradek zookeeper start`: one server in the background."""

from __future__ import annotations

from pathlib import Path

import click

from odradek.cli.output import print_done
from odradek.cli.zookeeper.jars import JARS_VARIABLE, find_class_path
from odradek.cli.zookeeper.server import DEFAULT_DATA_DIR, start

DEFAULT_PORT = 2181


@click.command("start")
@click.option("--data-dir", type=click.Path(path_type=Path), default=DEFAULT_DATA_DIR, show_default=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=DEFAULT_PORT, show_default=True)
@click.option("--jars", envvar=JARS_VARIABLE, help="The directory of ZooKeeper's jars; found if not given.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def command(data_dir: Path, host: str, port: int, jars: str | None, output: str) -> None:
    """Start a ZooKeeper server in the background; returns when it serves.

    odradek zookeeper start && odradek start --coordination zookeeper://127.0.0.1:2181
    """
    pid = start(data_dir, host, port, find_class_path(jars, Path.home()))
    row = {"pid": pid, "address": f"{host}:{port}", "data_dir": str(data_dir)}
    print_done(output, row, f"ready: {host}:{port}")
