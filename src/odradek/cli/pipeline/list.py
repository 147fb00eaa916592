"""`odradek pipeline list`: the pipelines that were run here, and what became of them."""

from __future__ import annotations

import click

from odradek.cli.output import output_option, print_rows


@click.command("list")
@output_option
def command(output: str | None) -> None:
    """List the pipelines that were run by this user on this machine."""
    from odradek.spark.pipeline.running.state_directory import all_runs  # noqa: PLC0415

    rows = [
        {
            "pipeline": run.name,
            "state": run.state,
            "pid": run.pid,
            "started": run.started_at,
            "file": run.file,
            "error": run.error,
        }
        for run in all_runs()
    ]
    lines = [
        f"{row['pipeline']}\t{row['state']}\t{row['pid']}\t{row['started']}\t{row['file']}" for row in rows
    ]
    print_rows(output, rows, lines, "pipelines")
