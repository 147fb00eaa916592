from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from client.eventually import eventually
from kafka_peer import running_kafka
from odradek.client.admin.admin import Admin
from odradek.client.admin.base import require
from odradek.client.broker_errors import InvalidRequest, SecurityDisabled
from odradek.common.acls import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from odradek.testing import Cluster

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(params=["ours", pytest.param("kafka", marks=[pytest.mark.java, pytest.mark.slow])])
def admin(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Admin]:
    with ExitStack() as stack:
        if request.param == "ours":
            address = stack.enter_context(Cluster(SETTINGS)).bootstrap
        else:
            address = stack.enter_context(running_kafka(tmp_path, SETTINGS))
        yield stack.enter_context(Admin(bootstrap_servers=address))


def an_acl(name: str, operation: AclOperation = AclOperation.READ, **pattern: PatternType) -> AclBinding:
    return AclBinding(
        ResourcePattern(ResourceType.TOPIC, name, **pattern),
        AccessControlEntry("User:alice", "*", operation, AclPermissionType.ALLOW),
    )


def test_acls_are_created_found_and_deleted(admin: Admin) -> None:
    literal = an_acl("orders")
    prefixed = an_acl("ord", AclOperation.WRITE, pattern_type=PatternType.PREFIXED)
    for outcome in admin.create_acls([literal, prefixed]).values():
        assert require(outcome) is None
    # Kafka's brokers receive them a little after the controller has answered.
    eventually(lambda: set(admin.describe_acls()) == {literal, prefixed})

    matching = ResourcePatternFilter(ResourceType.TOPIC, "orders", PatternType.MATCH)
    assert set(admin.describe_acls(AclBindingFilter(matching))) == {literal, prefixed}
    writing = AclBindingFilter(matching, AccessControlEntryFilter(operation=AclOperation.WRITE))
    assert admin.describe_acls(writing) == [prefixed]

    assert require(admin.delete_acls([writing])[writing]) == [prefixed]
    eventually(lambda: admin.describe_acls() == [literal])


def test_an_acl_that_cannot_be_is_refused_alone(admin: Admin) -> None:
    good = an_acl("orders")
    bad = AclBinding(ResourcePattern(ResourceType.CLUSTER, "another"), good.entry)
    outcomes = admin.create_acls([bad, good])
    assert isinstance(outcomes[bad], InvalidRequest)
    assert outcomes[good] is None


def test_without_an_authorizer_there_are_no_acls() -> None:
    with Cluster({}) as cluster, Admin(bootstrap_servers=cluster.bootstrap) as admin:
        with pytest.raises(SecurityDisabled, match=r"authorizer\.class\.name"):
            admin.describe_acls()
        (outcome,) = admin.create_acls([an_acl("orders")]).values()
        assert isinstance(outcome, SecurityDisabled)
