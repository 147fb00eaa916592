"""`odradek pipeline status`: the progress of one pipeline, from another terminal."""

from __future__ import annotations

import dataclasses

import click

from odradek.cli.connecting import friendly_errors
from odradek.cli.output import output_option, print_rows


@click.command("status")
@click.argument("name")
@output_option
def command(name: str, output: str | None) -> None:
    """Show the state and the progress of a pipeline, running or not."""
    from odradek.spark.pipeline.running.state_directory import StateDirectory  # noqa: PLC0415

    with friendly_errors():
        run = StateDirectory(name).read()
    queries = run.progress.get("queries", {})
    rows = [
        {
            "query": query,
            "batch": row["batch"],
            "rows_in": row["rows_in"],
            "rows_out": row["rows_out"],
            "rows_per_s": round(row["rows_in_per_s"]),
            "batch_ms": row["batch_ms"],
            "lag": row["lag_total"],
            "lag_trend": row.get("lag_total_trend", "same"),  # a status file may be older than this field
            "state_rows": row["state_rows"],
        }
        for query, row in queries.items()
    ]
    if output != "json":
        click.echo(f"{run.name}: {run.state}, process {run.pid}, since {run.started_at}, {run.master}")
        last_error = run.error or run.progress.get("last_error")
        if last_error:
            click.echo(f"last error: {last_error}")
    lines = [", ".join(f"{key} {value}" for key, value in row.items()) for row in rows]
    print_rows(output, rows, lines, "queries", objects=[dataclasses.asdict(run)])
