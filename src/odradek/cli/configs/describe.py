"""`odradek configs describe`: settings with their values and where these come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from odradek.cli.configs.entities import Entity, check_exists, entity_options, parse_entity
from odradek.cli.connecting import admin_client, bootstrap_option
from odradek.cli.output import output_option, print_rows

if TYPE_CHECKING:
    from odradek.client.admin.configs import ConfigEntry


@click.command("describe")
@click.option("--all", "shows_all", is_flag=True, help="Also show defaults and static settings.")
@bootstrap_option
@output_option
@entity_options
def command(shows_all: bool, bootstrap: str, output: str | None, **flags: Any) -> None:
    """Show the dynamic settings, or with --all every setting.

    odradek configs describe --topic orders --all
    """
    from odradek.client.admin.base import require  # noqa: PLC0415
    from odradek.client.admin.configs import ConfigSource  # noqa: PLC0415

    entity = parse_entity(**flags)
    resource = entity.resource()
    with admin_client(bootstrap) as admin:
        check_exists(admin, entity)
        described = admin.describe_configs([resource], include_synonyms=True)[resource]
        entries = sorted(require(described).values(), key=lambda entry: entry.name)
    fixed = (ConfigSource.DEFAULT_CONFIG, ConfigSource.STATIC_BROKER_CONFIG)
    if not shows_all:
        entries = [entry for entry in entries if entry.source not in fixed and _is_own(entry, entity)]
    kind = "All" if shows_all else "Default" if entity.is_default else "Dynamic"
    lines = [f"{kind} configs for {entity} are:", *(_line(entry) for entry in entries)]
    print_rows(output, [_row(entry) for entry in entries], lines, title=f"settings of {entity} were set")


def _is_own(entry: ConfigEntry, entity: Entity) -> bool:
    """Whether the setting belongs to the entity itself; a topic also has its broker's dynamic defaults."""
    return entity.type != "topic" or entry.source.name == "DYNAMIC_TOPIC_CONFIG"


def _line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(f"{one.source.name}:{one.name}={_shown(one.value)}" for one in entry.synonyms)
    is_sensitive = str(entry.is_sensitive).lower()
    return f"  {entry.name}={_shown(entry.value)} sensitive={is_sensitive} synonyms={{{synonyms}}}"


def _shown(value: str | None) -> str:
    return "null" if value is None else value


def _row(entry: ConfigEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name,
        "sensitive": entry.is_sensitive,
        "read_only": entry.is_read_only,
    }
