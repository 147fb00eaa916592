"""`odradek acls remove`: remove ACLs."""

from __future__ import annotations

from typing import Any

import click

from odradek.cli.acls.entries import EntriesByResource, entry_options, parse_entries
from odradek.cli.acls.lines import changed_lines, entry_words, pattern_words, row
from odradek.cli.acls.resources import require_resources, resource_options
from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.output import output_option, print_rows
from odradek.common.acls import AccessControlEntryFilter, AclBinding, AclBindingFilter


@click.command("remove")
@entry_options
@resource_options
@click.option("--force", is_flag=True, help="Do not ask for confirmation.")
@bootstrap_option
@output_option
def command(
    cluster: bool, pattern_type: str, force: bool, bootstrap: str, output: str | None, **flags: Any
) -> None:
    """Remove the given ACLs; without principals, all ACLs of the resources.

    odradek acls remove --allow-principal User:alice --operation Read --topic orders
    """
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    resources = require_resources(cluster, pattern_type, flags)
    wanted = parse_entries(resources, **flags)
    if not force:
        _confirm(wanted)
    with admin_client(bootstrap) as admin:
        outcomes = admin.delete_acls(_filters(wanted))
    removed: list[AclBinding] = []
    problems = []
    for outcome in outcomes.values():
        if isinstance(outcome, BrokerError):
            problems.append(str(outcome))
        else:
            removed += outcome
    rows = [row(one) for one in sorted(removed)]
    print_rows(output, rows, changed_lines("Removed", removed), title="ACLs removed")
    if problems:
        raise Failed("\n".join(dict.fromkeys(problems)))


def _filters(wanted: EntriesByResource) -> list[AclBindingFilter]:
    return [
        AclBindingFilter(resource, one)
        for resource, entries in wanted.items()
        for one in [AccessControlEntryFilter(*entry) for entry in entries] or [AccessControlEntryFilter()]
    ]


def _confirm(wanted: EntriesByResource) -> None:
    for resource, entries in wanted.items():
        if entries:
            listed = "\n".join(f"\t{entry_words(entry)}" for entry in entries)
            question = f"Are you sure you want to remove ACLs: \n {listed} \n from resource filter"
        else:
            question = "Are you sure you want to delete all ACLs for resource filter"
        click.confirm(f"{question} `{pattern_words(resource)}`?", abort=True, err=True)
