"""Parses the flags that select an entity: `--topic`, `--broker`, `--entity-type topics --entity-name x`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from odradek.cli.connecting import Failed
from odradek.cli.groups.group_names import complete_group
from odradek.cli.options import UsageProblem
from odradek.cli.topic_names import complete_topic, no_such_topic

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.configs import ConfigResource

_TYPES = {"topics": "topic", "brokers": "broker", "groups": "group", "client-metrics": "client-metrics"}


class Entity(NamedTuple):
    """An entity with settings; the name is empty for the default of all brokers."""

    type: str
    name: str

    @property
    def is_default(self) -> bool:
        """Whether all brokers are meant."""
        return not self.name

    def __str__(self) -> str:
        return "brokers in the cluster" if self.is_default else f"{self.type} {self.name}"

    def resource(self) -> ConfigResource:
        """The entity as a ConfigResource."""
        from odradek.client.admin.configs import ConfigResource, ResourceType  # noqa: PLC0415

        return ConfigResource(ResourceType[self.type.upper().replace("-", "_")], self.name)


def entity_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """All flags that name an entity; `parse_entity` takes their values."""
    options = (
        click.option("--topic", shell_complete=complete_topic, help="A topic."),
        click.option("--broker", metavar="ID", help="A broker."),
        click.option("--broker-defaults", is_flag=True, help="The default of all brokers."),
        click.option("--group", shell_complete=complete_group, help="A group."),
        click.option("--entity-type", type=click.Choice([*_TYPES]), help="As for kafka-configs.sh."),
        click.option("--entity-name", help="As for kafka-configs.sh."),
        click.option("--entity-default", is_flag=True, help="As for kafka-configs.sh."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def parse_entity(
    *,
    topic: str | None,
    broker: str | None,
    broker_defaults: bool,
    group: str | None,
    entity_type: str | None,
    entity_name: str | None,
    entity_default: bool,
) -> Entity:
    """The one entity that was named; UsageProblem for none or several."""
    kinds = (("topic", topic), ("broker", broker), ("group", group))
    named = [Entity(kind, name) for kind, name in kinds if name]
    if broker_defaults:
        named.append(Entity("broker", ""))
    if entity_type:
        named.append(_by_type(entity_type, entity_name, entity_default))
    elif entity_name or entity_default:
        raise UsageProblem("--entity-name and --entity-default need --entity-type")
    if not named:
        raise UsageProblem(
            "no entity given: name --topic NAME, --broker ID, --broker-defaults or --group NAME"
        )
    if len(named) > 1:
        raise UsageProblem("name one topic, broker or group at a time")
    (entity,) = named
    if entity.type == "broker" and entity.name and not entity.name.isdecimal():
        raise UsageProblem(f"broker {entity.name!r} is not a number")
    return entity


def check_exists(admin: Admin, entity: Entity) -> None:
    """Failed, with the nearest name, for a topic or broker that does not exist."""
    if entity.type == "topic":
        names = [one.name for one in admin.list_topics(include_internal=True)]
        if entity.name not in names:
            raise Failed(no_such_topic(entity.name, names))
    if entity.type == "broker" and entity.name:
        ids = [one.broker_id for one in admin.describe_cluster().brokers]
        if int(entity.name) not in ids:
            raise Failed(f"there is no broker {entity.name}; the cluster has {', '.join(map(str, ids))}")


def _by_type(entity_type: str, name: str | None, is_default: bool) -> Entity:
    kind = _TYPES[entity_type]
    if is_default:
        if kind != "broker":
            raise UsageProblem(f"--entity-default is for brokers, not for {entity_type}")
        return Entity(kind, "")
    if not name:
        raise UsageProblem(f"--entity-type {entity_type} needs --entity-name")
    return Entity(kind, name)
