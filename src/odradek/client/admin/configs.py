"""Settings of topics, brokers and groups: describe, change, list."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from odradek.client.admin.base import AdminBase, ResultOrError, outcome_of
from odradek.client.broker_errors import check
from odradek.client.network.connection import BrokerConnection
from odradek.common.config import Kind
from odradek.protocol.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


class ResourceType(IntEnum):
    """Types of resources with settings, numbered as on the wire."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @classmethod
    def _missing_(cls, value: object) -> ResourceType:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True, order=True)
class ConfigResource:
    """A resource with settings; the broker with the empty name is the default of all brokers."""

    type: ResourceType
    name: str


class ConfigSource(IntEnum):
    """Where a value comes from, numbered as on the wire."""

    UNKNOWN = -1
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8

    @classmethod
    def _missing_(cls, value: object) -> ConfigSource:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A value that would apply if those before it were not set."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A setting with its effective value; that of a password is None."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    is_read_only: bool
    synonyms: tuple[ConfigSynonym, ...] = ()
    type: Kind | None = None
    documentation: str | None = None


class AlterOperation(IntEnum):
    """What to do with a setting, numbered as on the wire."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One change of one setting; to append and subtract is for lists."""

    name: str
    value: str | None = None
    operation: AlterOperation = AlterOperation.SET


Configs = dict[str, ConfigEntry]
Result = TypeVar("Result")
CallFor = Callable[
    [BrokerConnection, list[ConfigResource]], Awaitable[dict[ConfigResource, ResultOrError[Result]]]
]


class ConfigAdmin(AdminBase):
    """The calls about settings."""

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Iterable[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> dict[ConfigResource, ResultOrError[Configs]]:
        """All settings of each resource by name, or those of the names given."""
        wanted = None if names is None else list(names)

        async def call(
            connection: BrokerConnection, group: list[ConfigResource]
        ) -> dict[ConfigResource, ResultOrError[Configs]]:
            request = _describe_request(group, wanted)
            request.include_synonyms = include_synonyms
            request.include_documentation = include_documentation
            response = await connection.send_request(request, DescribeConfigsResponse)
            return {
                _resource(row.resource_type, row.resource_name): outcome_of(
                    {config.name: _entry(config) for config in row.configs}, row.error_code, row.error_message
                )
                for row in response.results
            }

        return await self._where_it_belongs("describing configs", resources, call)

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange]],
        *,
        validate_only: bool = False,
    ) -> dict[ConfigResource, ResultOrError[None]]:
        """Change single settings and leave the others as they are (IncrementalAlterConfigs)."""
        listed = {resource: list(some) for resource, some in changes.items()}

        async def call(
            connection: BrokerConnection, group: list[ConfigResource]
        ) -> dict[ConfigResource, ResultOrError[None]]:
            request = IncrementalAlterConfigsRequest(
                resources=[_change_row(resource, listed[resource]) for resource in group],
                validate_only=validate_only,
            )
            response = await connection.send_request(request, IncrementalAlterConfigsResponse)
            return {
                _resource(row.resource_type, row.resource_name): outcome_of(
                    None, row.error_code, row.error_message
                )
                for row in response.responses
            }

        return await self._where_it_belongs("altering configs", listed, call)

    async def _where_it_belongs(
        self, what: str, resources: Iterable[ConfigResource], call: CallFor[Result]
    ) -> dict[ConfigResource, ResultOrError[Result]]:
        """Send requests about brokers to those brokers, and all others to any broker."""

        async def call_one(
            node_id: int | None, group: list[ConfigResource]
        ) -> dict[ConfigResource, ResultOrError[Result]]:
            if node_id is None:
                return await call(await self.brokers.any_connection(), group)
            await self.brokers.ensure_fresh()
            return await call(await self.brokers.connection(node_id), group)

        groups = _by_destination(resources)
        calls = [
            self.brokers.retry(what, functools.partial(call_one, node_id, group))
            for node_id, group in groups.items()
        ]
        parts = await asyncio.gather(*calls)
        return {resource: outcome for part in parts for resource, outcome in part.items()}

    async def list_config_resources(self, types: Iterable[ResourceType] = ()) -> list[ConfigResource]:
        """The resources that have settings of their own; of all types if none is given."""
        request = ListConfigResourcesRequest(resource_types=[int(one) for one in types])
        response = await self.brokers.retry(
            "listing config resources",
            lambda: self.brokers.send_to_any(request, ListConfigResourcesResponse),
        )
        check(response.error_code)
        return sorted(_resource(row.resource_type, row.resource_name) for row in response.config_resources)


def _by_destination(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    """The broker to send a request to; None for any."""
    groups: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        is_broker = resource.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
        node_id = int(resource.name) if is_broker and resource.name else None
        groups.setdefault(node_id, []).append(resource)
    return groups


def _describe_request(resources: list[ConfigResource], names: list[str] | None) -> DescribeConfigsRequest:
    rows = [
        DescribeConfigsRequest.Resources(
            resource_type=one.type, resource_name=one.name, configuration_keys=names
        )
        for one in resources
    ]
    return DescribeConfigsRequest(resources=rows)


def _resource(resource_type: int, name: str) -> ConfigResource:
    return ConfigResource(ResourceType(resource_type), name)


def _entry(row: DescribeConfigsResponse.Results.Configs) -> ConfigEntry:
    return ConfigEntry(
        name=row.name,
        value=row.value,
        source=ConfigSource(row.config_source),
        is_sensitive=row.is_sensitive,
        is_read_only=row.read_only,
        synonyms=tuple(ConfigSynonym(one.name, one.value, ConfigSource(one.source)) for one in row.synonyms),
        type=Kind(row.config_type) if row.config_type in set(Kind) else None,
        documentation=row.documentation or None,
    )


def _change_row(
    resource: ConfigResource, changes: list[ConfigChange]
) -> IncrementalAlterConfigsRequest.Resources:
    return IncrementalAlterConfigsRequest.Resources(
        resource_type=resource.type,
        resource_name=resource.name,
        configs=[
            IncrementalAlterConfigsRequest.Resources.Configs(
                name=change.name, config_operation=change.operation, value=change.value
            )
            for change in changes
        ],
    )
