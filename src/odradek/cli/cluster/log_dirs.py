"""`odradek cluster log-dirs`: the partitions in the log directories of the brokers, with their sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.offsets.partitions import parse_numbers
from odradek.cli.output import output_option, print_rows, to_json
from odradek.cli.topic_names import topics_argument

if TYPE_CHECKING:
    from odradek.client.admin.log_dirs import LogDirs


@click.command("log-dirs")
@topics_argument(required=False)
@click.option("--broker-list", metavar="ID,...", help="Only these brokers; all by default.")
@bootstrap_option
@output_option
def command(topics: tuple[str, ...], broker_list: str | None, bootstrap: str, output: str | None) -> None:
    """Show the size and the log directory of each replica, for all topics or some.

    odradek cluster log-dirs orders
    """
    wanted = [name for topic in topics for name in topic.split(",")]
    with admin_client(bootstrap) as admin:
        known = [broker.broker_id for broker in admin.describe_cluster().brokers]
        ids = parse_numbers(broker_list) if broker_list else known
        missing = sorted(set(ids) - set(known))
        if missing:
            raise Failed(f"there is no broker {missing[0]}; the cluster has {', '.join(map(str, known))}")
        found = admin.describe_log_dirs(ids, topics=wanted or None)
    listed = {broker: _log_dirs(directories) for broker, directories in found.items()}
    rows = [
        {"broker": broker, "log_dir": directory["logDir"], **partition}
        for broker, directories in listed.items()
        for directory in directories
        for partition in directory["partitions"]
    ]
    brokers = [{"broker": broker, "logDirs": directories} for broker, directories in listed.items()]
    document = {"brokers": brokers, "version": 1}
    # kafka-log-dirs.sh prints one JSON document, so that text and JSON are the same here.
    print_rows(output, rows, [to_json(document)], title="replicas", objects=[document])


def _log_dirs(directories: LogDirs) -> list[dict[str, Any]]:
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    listed: list[dict[str, Any]] = []
    for path, directory in sorted(directories.items()):
        if isinstance(directory, BrokerError):
            listed.append({"partitions": [], "error": str(directory), "logDir": path})
            continue
        partitions = [
            {
                "partition": str(partition),
                "size": replica.size_bytes,
                "offsetLag": replica.offset_lag,
                "isFuture": replica.is_future,
            }
            for partition, replica in sorted(directory.replicas.items())
        ]
        listed.append({"partitions": partitions, "error": None, "logDir": path})
    return listed
