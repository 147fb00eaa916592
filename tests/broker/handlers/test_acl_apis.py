"""CreateAcls, DescribeAcls and DeleteAcls, asked by clients that we did not write and by single messages."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from broker.running import RunningBroker
from compat.java_tools import printed, run_tool
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.admin

AUTHORIZER = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"
READ, LITERAL, ALLOW, TOPIC = 3, 3, 3, 2
EVERYTHING = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path, AUTHORIZER, "super.users=User:ANONYMOUS") as running:
        yield running


def an_acl(name: str = "orders", **fields: Any) -> AclBinding:
    defaults = {
        "restype": ResourceType.TOPIC,
        "resource_pattern_type": ResourcePatternType.LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": AclOperation.READ,
        "permission_type": AclPermissionType.ALLOW,
    }
    return AclBinding(name=name, **(defaults | fields))


def test_librdkafka_creates_describes_and_deletes(admin: AdminClient) -> None:
    made = [
        an_acl(),
        an_acl("logs-", resource_pattern_type=ResourcePatternType.PREFIXED),
        an_acl("g", restype=ResourceType.GROUP, permission_type=AclPermissionType.DENY, host="10.0.0.1"),
        an_acl(operation=AclOperation.ALTER_CONFIGS),
    ]
    for future in admin.create_acls(made).values():
        assert future.result() is None
    assert set(admin.describe_acls(EVERYTHING).result()) == set(made)

    matching = AclBindingFilter(
        ResourceType.TOPIC,
        "logs-2024",
        ResourcePatternType.MATCH,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert admin.describe_acls(matching).result() == [made[1]]
    ((_, deleted),) = admin.delete_acls([matching]).items()
    assert deleted.result() == [made[1]]
    assert set(admin.describe_acls(EVERYTHING).result()) == {made[0], made[2], made[3]}


def test_kafka_python_creates_describes_and_deletes(python_admin: kafka.admin.KafkaAdminClient) -> None:
    pattern = kafka.admin.ResourcePattern(kafka.admin.ResourceType.TOPIC, "orders")
    acl = kafka.admin.ACL(
        "User:alice", "*", kafka.admin.ACLOperation.READ, kafka.admin.ACLPermissionType.ALLOW, pattern
    )
    assert python_admin.create_acls([acl])["succeeded"] == [acl]
    wanted = kafka.admin.ACLFilter(
        None,
        None,
        kafka.admin.ACLOperation.ANY,
        kafka.admin.ACLPermissionType.ANY,
        kafka.admin.ResourcePatternFilter(
            kafka.admin.ResourceType.ANY, None, kafka.admin.ACLResourcePatternType.ANY
        ),
    )
    found, _ = python_admin.describe_acls(wanted)
    assert found == [acl]
    ((_, deleted, _),) = python_admin.delete_acls([wanted])
    assert deleted == [acl]
    assert python_admin.describe_acls(wanted)[0] == []


def creation(**fields: Any) -> CreateAclsRequest.Creations:
    defaults = {
        "resource_type": TOPIC,
        "resource_name": "orders",
        "resource_pattern_type": LITERAL,
        "principal": "User:alice",
        "host": "*",
        "operation": READ,
        "permission_type": ALLOW,
    }
    return CreateAclsRequest.Creations(**(defaults | fields))


def test_every_acl_has_its_own_answer(broker: RunningBroker) -> None:
    bad = [
        (creation(resource_type=99), "Invalid resourceType UNKNOWN"),
        (creation(resource_type=1), "Invalid resourceType ANY"),
        (creation(resource_pattern_type=2), "Invalid patternType MATCH"),
        (creation(operation=1), "Invalid operation ANY"),
        (creation(permission_type=1), "Invalid permissionType ANY"),
        (creation(resource_type=4), "The only valid name for the CLUSTER resource is kafka-cluster"),
        (creation(resource_name=""), "Invalid empty resource name"),
        (creation(resource_name="a/b"), "ACL binding contains invalid resource name: a/b"),
        (creation(resource_name=".."), "ACL binding contains invalid resource name: .."),
        (creation(principal="alice"), "Could not parse principal from `alice`"),
        (creation(principal="User:"), "Invalid principal `User:`"),
    ]
    request = CreateAclsRequest(creations=[creation(), *(one for one, _ in bad), creation(host="1.2.3.4")])
    good, *refused, last = broker.ask(ApiKey.CREATE_ACLS, 3, request).results
    assert (good.error_code, good.error_message, last.error_code) == (0, None, 0)
    for row, (_, message) in zip(refused, bad, strict=True):
        assert row.error_code == ErrorCode.INVALID_REQUEST
        assert row.error_message.startswith(message)

    found = broker.ask(ApiKey.DESCRIBE_ACLS, 1, everything()).resources
    assert [(one.resource_name, len(one.acls)) for one in found] == [("orders", 2)]


def everything(**fields: Any) -> DescribeAclsRequest:
    wanted = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    return DescribeAclsRequest(
        resource_name_filter=None, principal_filter=None, host_filter=None, **(wanted | fields)
    )


@pytest.mark.parametrize(
    "field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"]
)
def test_a_filter_with_an_unknown_number_is_refused(broker: RunningBroker, field: str) -> None:
    refused = broker.ask(ApiKey.DESCRIBE_ACLS, 3, everything(**{field: 99}))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    fields = {name: getattr(everything(**{field: 99}), name) for name in DeleteAclsRequest.Filters.__slots__}
    request = DeleteAclsRequest(filters=[DeleteAclsRequest.Filters(**fields)])
    (row,) = broker.ask(ApiKey.DELETE_ACLS, 3, request).filter_results
    assert (row.error_code, row.matching_acls) == (ErrorCode.INVALID_REQUEST, [])


def test_of_two_filters_that_find_the_same_the_first_has_it(
    admin: AdminClient, broker: RunningBroker
) -> None:
    for future in admin.create_acls([an_acl()]).values():
        future.result()
    fields = {name: getattr(everything(), name) for name in DeleteAclsRequest.Filters.__slots__}
    request = DeleteAclsRequest(filters=[DeleteAclsRequest.Filters(**fields)] * 2)
    rows = broker.ask(ApiKey.DELETE_ACLS, 2, request).filter_results
    assert [len(row.matching_acls) for row in rows] == [1, 0]


def test_without_an_authorizer_security_is_disabled(tmp_path: Path) -> None:
    with RunningBroker(tmp_path) as broker:
        admin = AdminClient({"bootstrap.servers": broker.address})
        # Not by librdkafka, which does not look at the error of DescribeAcls, of Kafka's neither.
        described = broker.ask(ApiKey.DESCRIBE_ACLS, 3, everything())
        assert described.error_code == ErrorCode.SECURITY_DISABLED
        created, deleted = admin.create_acls([an_acl()]), admin.delete_acls([EVERYTHING])
        for future in (*created.values(), *deleted.values()):
            with pytest.raises(KafkaException, match="No Authorizer is configured"):
                future.result()


@pytest.mark.java
@pytest.mark.slow
def test_kafka_acls_adds_lists_and_removes(broker: RunningBroker) -> None:
    def tool(*arguments: str) -> str:
        return printed("AclCommand", "--bootstrap-server", broker.address, *arguments)

    tool("--add", "--allow-principal", "User:bob", "--producer", "--topic", "t", "--transactional-id", "x")
    prefixed = ("--resource-pattern-type", "prefixed")
    tool("--add", "--allow-principal", "User:bob", "--consumer", "--topic", "t-", "--group", "g", *prefixed)
    listed = tool("--list", "--topic", "t")
    assert "ResourcePattern(resourceType=TOPIC, name=t, patternType=LITERAL)" in listed
    assert "(principal=User:bob, host=*, operation=WRITE, permissionType=ALLOW)" in listed
    assert "PREFIXED" in tool("--list", "--topic", "t-1", "--resource-pattern-type", "match")
    tool("--remove", "--topic", "t", "--force")
    assert tool("--list", "--topic", "t").strip() == ""
    refused = run_tool("AclCommand", "--bootstrap-server", broker.address, "--add", "--topic", "a/b")
    assert refused.returncode == 1
