"""`odradek topics alter`: add partitions to topics."""

from __future__ import annotations

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option, print_done
from odradek.cli.topic_names import matching, regex_option, topics_argument
from odradek.cli.topics.replica_assignment import parse_replica_assignment


@click.command("alter")
@topics_argument(required=True)
@regex_option
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    required=True,
    help="The new number of partitions; it cannot decrease.",
)
@click.option(
    "--replica-assignment",
    metavar="ID:ID,...",
    help="The brokers of all partitions, those that exist included.",
)
@click.option("--if-exists", is_flag=True, help="Ignore topics that do not exist.")
@bootstrap_option
@output_option
def command(
    topics: tuple[str, ...],
    regex: bool,
    partitions: int,
    replica_assignment: str | None,
    if_exists: bool,
    bootstrap: str,
    output: str | None,
) -> None:
    """Increase the number of partitions of topics.

    Records with a key may go to other partitions afterwards: the key decides by the number of partitions.
    """
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    placed = list(parse_replica_assignment(replica_assignment).values())
    if placed and len(placed) != partitions:
        raise UsageProblem(f"--replica-assignment places {len(placed)} partitions, not {partitions}")
    with admin_client(bootstrap) as admin:
        wanted = matching(admin, topics, regex=regex, include_internal=True, may_be_missing=if_exists)
        described = admin.describe_topics(wanted)
        new_ones = {
            name: placed[len(topic.partitions) :]
            for name, topic in described.items()
            if placed and not isinstance(topic, BrokerError)
        }
        totals = dict.fromkeys(wanted, partitions)
        outcomes = admin.create_partitions(totals, assignments=new_ones) if wanted else {}
    problems = [str(outcome) for outcome in outcomes.values() if isinstance(outcome, BrokerError)]
    for name, outcome in outcomes.items():
        if not isinstance(outcome, BrokerError):
            row = {"topic": name, "partitions": partitions}
            print_done(output, row, f"Topic {name} has {partitions} partitions.")
    if problems:
        raise Failed("\n".join(problems))
