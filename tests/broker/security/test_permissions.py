from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from odradek.broker.requests.served_apis import SERVED
from odradek.broker.security.acls import AccessDenied, Operation, Resource, ResourceType
from odradek.broker.security.authorizer import configured_authorizer
from odradek.broker.security.permissions import PERMISSIONS, needed_of_request
from odradek.broker.settings.load import load
from odradek.cluster.acls import change_acls
from odradek.common.acls import (
    CLUSTER,
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
)
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import ConfigError
from odradek.coordination.urls import open_store
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    AlterReplicaLogDirsRequest,
    ApiVersionsRequest,
    DescribeLogDirsRequest,
    ListConfigResourcesRequest,
)

from ..on_this_loop import a_broker, run


@pytest.mark.parametrize("api_key", sorted(SERVED), ids=lambda one: one.name)
def test_every_api_that_is_served_says_what_it_needs(api_key: ApiKey) -> None:
    assert api_key in PERMISSIONS, f"{api_key.name} has no row in permissions.py"


def test_what_brokers_say_to_each_other_needs_cluster_action() -> None:
    for api_key in (
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.ALTER_PARTITION,
    ):
        assert needed_of_request(api_key) == (Operation.CLUSTER_ACTION,)


class Deny:
    """Nobody may do one thing."""

    def __init__(self, denied: Operation) -> None:
        self.denied = denied
        self.asked: list[tuple[str, str, Operation, Resource]] = []

    def allows(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        self.asked.append((principal, host, operation, resource))
        return operation is not self.denied

    def acls(self, wanted: AclBindingFilter) -> list[AclBinding]:
        return []

    def allows_any(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        return operation is not self.denied


def test_a_request_that_is_not_allowed_is_refused_before_its_handler_sees_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path) as (server, wire):
            server.services.authorizer = deny = Deny(Operation.ALTER)
            topic = AlterReplicaLogDirsRequest.Dirs.Topics(name="orders", partitions=[0])
            request = AlterReplicaLogDirsRequest(
                dirs=[AlterReplicaLogDirsRequest.Dirs(path=str(tmp_path), topics=[topic])]
            )
            ((row,),) = [
                result.partitions
                for result in (await wire.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, request)).results
            ]
            assert row.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            assert deny.asked[0][:3] == ("User:ANONYMOUS", "127.0.0.1", Operation.ALTER)

            described = await wire.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
            assert (described.error_code, len(described.results)) == (0, 1)
            await wire.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())

            server.services.authorizer = Deny(Operation.DESCRIBE_CONFIGS)
            refused = await wire.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, ListConfigResourcesRequest())
            assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    run(main)


@pytest.mark.parametrize(
    ("kind", "error_code"),
    [
        (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_a_refusal_names_the_kind_of_resource_by_its_code(kind: ResourceType, error_code: ErrorCode) -> None:
    resource = Resource(kind, "secret")
    assert AccessDenied("User:eve", Operation.READ, resource).error_code is error_code


def test_the_setting_turns_permissions_on_and_a_change_by_another_process_takes_effect(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        settings = ("authorizer.class.name=kafka.security.authorizer.AclAuthorizer", "super.users=User:admin")
        async with a_broker(tmp_path, *settings) as (_, wire):

            async def error_code() -> int:
                response = await wire.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
                return int(response.error_code)

            assert await error_code() == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            entry = AccessControlEntry("User:ANONYMOUS", "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW)
            cluster = ResourcePattern(*CLUSTER)
            another = await open_store(f"sqlite:{tmp_path}/coordination.db")
            await change_acls(another, cluster, lambda _: (entry,))
            while await error_code() != ErrorCode.NONE:
                await asyncio.sleep(0.01)
            await change_acls(another, cluster, lambda _: ())
            while await error_code() != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                await asyncio.sleep(0.01)
            await another.close()

    run(main)


@pytest.mark.parametrize("name", ["org.apache.kafka.metadata.authorizer.StandardAuthorizer", ""])
def test_authorizers_that_are_known(name: str) -> None:
    config = load(None, [f"authorizer.class.name={name}"]).config
    assert (configured_authorizer(config) is not None) == bool(name)


def test_an_authorizer_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"com\.example\.Mine.*authorizer\.class\.name"):
        load(None, ["authorizer.class.name=com.example.Mine"])
