"""`odradek topics create`: create topics."""

from __future__ import annotations

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.output import output_option, print_done
from odradek.cli.topic_names import parse_pairs, topics_argument
from odradek.cli.topics.replica_assignment import parse_replica_assignment
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import uuid_to_text


@click.command("create")
@topics_argument(required=True)
@click.option(
    "--partitions", type=click.IntRange(min=1), help="How many; the broker's num.partitions by default."
)
@click.option(
    "--replication-factor",
    type=click.IntRange(min=1),
    help="Copies of each partition; the broker's default.replication.factor by default.",
)
@click.option(
    "--replica-assignment",
    metavar="ID:ID,...",
    help="The brokers of each partition: 0:1,1:2 is partition 0 on brokers 0 and 1, partition 1 on 1 and 2.",
)
@click.option(
    "--config", "configs", multiple=True, metavar="NAME=VALUE", help="A setting of the topic. Repeatable."
)
@click.option("--if-not-exists", is_flag=True, help="Ignore topics that exist.")
@click.option("--validate-only", is_flag=True, help="Only check whether the topic could be created.")
@bootstrap_option
@output_option
def command(
    topics: tuple[str, ...],
    partitions: int | None,
    replication_factor: int | None,
    replica_assignment: str | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
    validate_only: bool,
    bootstrap: str,
    output: str | None,
) -> None:
    """Create topics.

    odradek topics create orders --partitions 6 --config retention.ms=86400000
    """
    from odradek.client.admin.topics import BROKER_DEFAULT, NewTopic  # noqa: PLC0415
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    assignments = parse_replica_assignment(replica_assignment, bool(partitions or replication_factor))
    settings = parse_pairs(configs, "--config")
    wanted = [
        NewTopic(
            name, partitions or BROKER_DEFAULT, replication_factor or BROKER_DEFAULT, assignments, settings
        )
        for name in topics
    ]
    with admin_client(bootstrap) as admin:
        outcomes = admin.create_topics(wanted, validate_only=validate_only)
    problems = []
    for name, outcome in outcomes.items():
        if not isinstance(outcome, BrokerError):
            row = {
                "topic": name,
                "topic_id": uuid_to_text(outcome.topic_id),
                "partitions": outcome.num_partitions,
                "replication_factor": outcome.replication_factor,
                "created": not validate_only,
            }
            print_done(
                output, row, f"Topic {name} could be made." if validate_only else f"Created topic {name}."
            )
        elif not (if_not_exists and outcome.error_code is ErrorCode.TOPIC_ALREADY_EXISTS):
            problems.append(f"{name}: {outcome}" if name not in str(outcome) else str(outcome))
    if problems:
        raise Failed("\n".join(problems))
