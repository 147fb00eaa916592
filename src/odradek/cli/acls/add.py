"""`odradek acls add`: add ACLs."""

from __future__ import annotations

from typing import Any

import click

from odradek.cli.acls.entries import entry_options, parse_entries
from odradek.cli.acls.lines import changed_lines, row
from odradek.cli.acls.resources import require_resources, resource_options
from odradek.cli.connecting import Failed, admin_client, bootstrap_option
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option, print_rows
from odradek.common.acls import AclBinding, ResourcePattern


@click.command("add")
@entry_options
@resource_options
@bootstrap_option
@output_option
def command(cluster: bool, pattern_type: str, bootstrap: str, output: str | None, **flags: Any) -> None:
    """Allow or deny principals operations on topics, groups, transactional ids or the cluster.

    odradek acls add --allow-principal User:alice --operation Read --topic orders
    """
    from odradek.client.errors import BrokerError  # noqa: PLC0415

    if pattern_type not in ("literal", "prefixed"):
        raise UsageProblem(f"--resource-pattern-type {pattern_type} is not valid when adding ACLs")
    if not flags["allow_principal"] and not flags["deny_principal"]:
        raise UsageProblem("no principal: give --allow-principal or --deny-principal TYPE:NAME")
    resources = require_resources(cluster, pattern_type, flags)
    bindings = [
        AclBinding(ResourcePattern(one.resource_type, one.name or "", one.pattern_type), entry)
        for one, entries in parse_entries(resources, **flags).items()
        for entry in entries
    ]
    with admin_client(bootstrap) as admin:
        outcomes = admin.create_acls(bindings)
    added = [binding for binding in bindings if outcomes[binding] is None]
    print_rows(output, [row(one) for one in added], changed_lines("Adding", added), title="ACLs added")
    problems = [str(outcome) for outcome in outcomes.values() if isinstance(outcome, BrokerError)]
    if problems:
        raise Failed("\n".join(dict.fromkeys(problems)))
