"""`odradek topics delete`: delete topics with all their records."""

from __future__ import annotations

import click

from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.output import output_option, print_done
from odradek.cli.topic_names import matching, regex_option, topics_argument


@click.command("delete")
@topics_argument(required=True)
@regex_option
@click.option("--if-exists", is_flag=True, help="Ignore topics that do not exist.")
@bootstrap_option
@output_option
def command(
    topics: tuple[str, ...], regex: bool, if_exists: bool, bootstrap: str, output: str | None
) -> None:
    """Delete topics with all their records; a regular expression does not match internal topics.

    odradek topics delete orders

    odradek topics delete --regex 'test-.*'
    """
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    with admin_client(bootstrap) as admin:
        wanted = matching(admin, topics, regex=regex, include_internal=not regex, may_be_missing=if_exists)
        outcomes = admin.delete_topics(wanted) if wanted else {}
    problems = []
    for name, outcome in outcomes.items():
        if isinstance(outcome, BrokerError):
            problems.append(f"{name}: {outcome}")
        else:
            print_done(output, {"topic": name, "deleted": True}, f"Deleted topic {name}.")
    if problems:
        raise Failed("\n".join(problems))
