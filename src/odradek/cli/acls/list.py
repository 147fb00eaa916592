"""`odradek acls list`: list ACLs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from odradek.cli.acls.lines import current_lines, row
from odradek.cli.acls.resources import parse_resources, resource_options
from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.output import output_option, print_rows
from odradek.common.acls import AclBinding, AclBindingFilter, ResourcePatternFilter


@click.command("list")
@click.option(
    "--principal", "principals", multiple=True, metavar="TYPE:NAME", help="Only the ACLs of this principal."
)
@resource_options
@bootstrap_option
@output_option
def command(
    principals: tuple[str, ...],
    cluster: bool,
    pattern_type: str,
    bootstrap: str,
    output: str | None,
    **named: Any,
) -> None:
    """List all ACLs, or those of some resources or principals.

    odradek acls list --topic orders --resource-pattern-type match
    """
    patterns = parse_resources(cluster, pattern_type, **named) or [ResourcePatternFilter()]
    with admin_client(bootstrap) as admin:
        found = {one for pattern in patterns for one in admin.describe_acls(AclBindingFilter(pattern))}
    shown = sorted(one for one in found if not principals or one.entry.principal in principals)
    lines = _lines_by_principal(shown, principals) if principals else current_lines(shown)
    print_rows(output, [row(one) for one in shown], lines, title="ACLs")


def _lines_by_principal(bindings: list[AclBinding], principals: tuple[str, ...]) -> Iterator[str]:
    for principal in principals:
        yield f"ACLs for principal `{principal}`"
        yield from current_lines(one for one in bindings if one.entry.principal == principal)
