"""`odradek configs alter`: change settings while the cluster runs."""

from __future__ import annotations

import re
from typing import Any

import click

from odradek.cli.configs.entities import check_exists, entity_options, parse_entity
from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.options import UsageProblem
from odradek.cli.output import output_option, print_done

# A comma ends a pair, but not within brackets: cleanup.policy=[compact,delete]
_PAIR = re.compile(r"(?:\[[^\]]*\]|[^,\[])+")


@click.command("alter")
@click.option(
    "--add-config",
    "added",
    multiple=True,
    metavar="NAME=VALUE,...",
    help="Set values; a list goes in brackets: cleanup.policy=[compact,delete]. Repeatable.",
)
@click.option(
    "--delete-config",
    "deleted",
    multiple=True,
    metavar="NAME,...",
    help="Restore the default. Repeatable.",
)
@click.option("--validate-only", is_flag=True, help="Only check whether the change is valid.")
@bootstrap_option
@output_option
@entity_options
def command(
    added: tuple[str, ...],
    deleted: tuple[str, ...],
    validate_only: bool,
    bootstrap: str,
    output: str | None,
    **flags: Any,
) -> None:
    """Change settings of a topic, a broker, all brokers or a group.

    odradek configs alter --topic orders --add-config retention.ms=1000,cleanup.policy=[compact,delete]
    """
    from odradek.client.admin.base import require  # noqa: PLC0415
    from odradek.client.admin.configs import AlterOperation, ConfigChange  # noqa: PLC0415

    entity = parse_entity(**flags)
    values = parse_added(added)
    names = [name.strip() for text in deleted for name in text.split(",") if name.strip()]
    if not values and not names:
        raise UsageProblem("nothing to change: give --add-config NAME=VALUE or --delete-config NAME")
    both = sorted(set(values) & set(names))
    if both:
        raise UsageProblem(f"both set and deleted: {', '.join(both)}")
    changes = [ConfigChange(name, value) for name, value in values.items()]
    changes += [ConfigChange(name, operation=AlterOperation.DELETE) for name in names]
    resource = entity.resource()
    with admin_client(bootstrap) as admin:
        check_exists(admin, entity)
        require(admin.alter_configs({resource: changes}, validate_only=validate_only)[resource])
    row = {
        "type": entity.type,
        "name": entity.name,
        "added": values,
        "deleted": names,
        "altered": not validate_only,
    }
    kind = "default config" if entity.is_default else "config"
    done = (
        f"Could update {kind} for {entity}." if validate_only else f"Completed updating {kind} for {entity}."
    )
    print_done(output, row, done)


def parse_added(texts: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE pairs with commas between; brackets around a value are removed."""
    values: dict[str, str] = {}
    for text in texts:
        for pair in _PAIR.findall(text):
            name, equals, value = pair.partition("=")
            if not equals or not name.strip():
                raise UsageProblem(f"--add-config {pair!r} is not NAME=VALUE")
            values[name.strip()] = value.strip().removeprefix("[").removesuffix("]")
    return values
