"""`odradek doctor`: what is wrong with a cluster or a data directory, why, and what to do."""

from __future__ import annotations

from pathlib import Path

import click

from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.doctor.finding import Finding, Severity
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option, print_rows
from odradek.common.errors import ConfigError

_TIMEOUT_MS = 10_000


@click.command("doctor")
@click.argument("properties", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option("--data-dir", help="Check this log directory and its store; no broker is needed.")
@bootstrap_option
@output_option
def command(properties: str | None, data_dir: str | None, bootstrap: str, output: str | None) -> None:
    """Explain what is wrong with a cluster, and what to do about it.

    Finds dead brokers, a missing controller, offline and under-replicated partitions, failed disks. With a
    broker's configuration file or --data-dir, check these instead, without a broker. The exit code is 1 if
    anything was found.
    """
    if properties is None and data_dir is None:
        findings = _of_cluster(bootstrap)
        subject = f"the cluster at {bootstrap}"
    else:
        findings = _of_data(properties, data_dir)
        subject = data_dir or str(properties)
    rows = [
        {
            "severity": str(one.severity),
            "problem": one.problem,
            "reason": one.reason,
            "advice": one.advice,
            "names": one.names,
        }
        for one in findings
    ]
    lines = [line for one in findings for line in one.lines()] or [f"no problems: {subject}"]
    # A table has no space for sentences.
    print_rows("json" if output == "json" else "text", rows, lines)
    if findings:
        raise SystemExit(1)


def _of_cluster(bootstrap: str) -> list[Finding]:
    # Imported here: a check of files needs no client.
    from odradek.cli.doctor.cluster_findings import diagnose  # noqa: PLC0415
    from odradek.cli.doctor.cluster_state import read_cluster  # noqa: PLC0415

    with admin_client(bootstrap, default_api_timeout_ms=_TIMEOUT_MS, retry_backoff_ms=100) as admin:
        return diagnose(read_cluster(admin))


def _of_data(properties: str | None, data_dir: str | None) -> list[Finding]:
    from odradek.broker.settings.load import Given, load  # noqa: PLC0415
    from odradek.cli.doctor.data_dirs import diagnose_data  # noqa: PLC0415

    try:
        found = []
        for path in _broker_dirs(data_dir):
            options = [] if path is None else [Given("log.dirs", path, "--data-dir")]
            loaded = load(properties, (), (), options)
            found += diagnose_data(loaded.config)
    except ConfigError as error:
        if properties is None:
            raise UsageProblem(str(error)) from None
        advice = "`odradek configs docs` explains every setting"
        return [Finding(Severity.ERROR, f"{properties} is not valid", str(error), advice)]
    reason = "the broker starts, and ignores it or uses another value"
    found += [Finding(Severity.WARNING, warning, reason, "change it") for warning in loaded.warnings]
    return found


def _broker_dirs(data_dir: str | None) -> list[str | None]:
    """The directories of `start --brokers N` inside of the given one; else that one itself."""
    inside = [] if data_dir is None else sorted(map(str, Path(data_dir).glob("broker-*")))
    return list(inside) or [data_dir]
