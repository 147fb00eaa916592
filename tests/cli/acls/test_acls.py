from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat.java_tools import printed
from odradek.testing import Cluster


@pytest.fixture
def cli_cluster() -> Iterator[Cluster]:
    settings = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Cluster(settings) as cluster:
        yield cluster


ALICE = ("--allow-principal", "User:alice")
READS = "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)"
ORDERS = "ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)"


def test_added_listed_removed(cli):
    added = cli.lines("acls", "add", *ALICE, "--operation", "Read", "--topic", "orders")
    assert added == [f"Adding ACLs for resource `{ORDERS}`: ", f" \t{READS}", ""]
    listed = [f"Current ACLs for resource `{ORDERS}`:", f"\t{READS}", ""]
    assert cli.lines("acls", "list") == listed
    assert cli.lines("acls", "list", "--topic", "orders") == listed
    assert cli.lines("acls", "list", "--principal", "User:alice") == [
        "ACLs for principal `User:alice`",
        *listed,
    ]
    assert cli.lines("acls", "list", "--principal", "User:bob") == ["ACLs for principal `User:bob`"]
    assert cli.lines("acls", "list", "--group", "orders") == []
    removed = cli.lines("acls", "remove", *ALICE, "--operation", "read", "--topic", "orders", "--force")
    assert removed == [f"Removed ACLs for resource `{ORDERS}`: ", f" \t{READS}", ""]
    assert cli.lines("acls", "list") == []


def test_objects_have_every_part(cli):
    cli.run("acls", "add", "--deny-principal", "User:*", "--deny-host", "10.0.0.1", "--cluster")
    assert cli.objects("acls", "list") == [
        {
            "resource_type": "CLUSTER",
            "name": "kafka-cluster",
            "pattern_type": "LITERAL",
            "principal": "User:*",
            "host": "10.0.0.1",
            "operation": "ALL",
            "permission_type": "DENY",
        }
    ]


def operations(cli, *flags: str) -> set[tuple[str, str, str]]:
    return {
        (one["resource_type"], one["name"], one["operation"]) for one in cli.objects("acls", "list", *flags)
    }


def test_roles(cli):
    cli.run("acls", "add", *ALICE, "--producer", "--idempotent", "--topic", "t", "--transactional-id", "x")
    assert operations(cli) == {
        ("TOPIC", "t", "WRITE"),
        ("TOPIC", "t", "DESCRIBE"),
        ("TOPIC", "t", "CREATE"),
        ("TRANSACTIONAL_ID", "x", "WRITE"),
        ("TRANSACTIONAL_ID", "x", "DESCRIBE"),
        ("CLUSTER", "kafka-cluster", "IDEMPOTENT_WRITE"),
    }
    prefixed = ("--resource-pattern-type", "prefixed")
    cli.run("acls", "add", *ALICE, "--consumer", "--topic", "logs-", "--group", "g", *prefixed)
    assert operations(cli, "--topic", "logs-7", "--resource-pattern-type", "match") == {
        ("TOPIC", "logs-", "READ"),
        ("TOPIC", "logs-", "DESCRIBE"),
    }
    assert operations(cli, "--group", "g", *prefixed) == {("GROUP", "g", "READ")}


def test_removing_asks_first(cli):
    cli.run("acls", "add", *ALICE, "--topic", "orders")
    asked = cli.run("acls", "remove", "--topic", "orders", typed="n\n", exit_code=1)
    assert "delete all ACLs for resource filter" in asked.stderr
    assert len(cli.objects("acls", "list")) == 1
    cli.run("acls", "remove", "--topic", "orders", typed="y\n")
    assert cli.objects("acls", "list") == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["add", "--topic", "t"], "no principal"),
        (["add", *ALICE], "no resource"),
        (["add", "--allow-principal", "alice", "--topic", "t"], "is no principal"),
        (["add", *ALICE, "--topic", "t", "--operation", "Reed"], "'Reed' is unknown"),
        (["add", *ALICE, "--group", "g", "--operation", "Write"], "GROUP only supports operations"),
        (["add", *ALICE, "--topic", "t", "--resource-pattern-type", "match"], "not valid when adding"),
        (["add", *ALICE, "--cluster", "--resource-pattern-type", "prefixed"], "--cluster has no names"),
        (["add", *ALICE, "--producer", "--group", "g"], "need a --topic"),
        (["add", *ALICE, "--consumer", "--topic", "t"], "needs a --group"),
        (["add", *ALICE, "--consumer", "--topic", "t", "--group", "g", "--cluster"], "leave that out"),
        (["add", *ALICE, "--idempotent", "--topic", "t"], "--idempotent goes with"),
        (["add", *ALICE, "--producer", "--operation", "Read", "--topic", "t"], "not with --operation"),
        (["add", *ALICE, "--deny-host", "1.2.3.4", "--topic", "t"], "a host goes with a principal"),
        (["remove", "--operation", "Read", "--topic", "t", "--force"], "no principal"),
        (["remove", "--force"], "no resource"),
    ],
)
def test_what_cannot_be_meant_is_refused(cli, words, sentence):
    assert sentence in cli.error("acls", *words, exit_code=2)


def test_a_name_that_the_broker_refuses(cli):
    assert "invalid resource name: a/b" in cli.error("acls", "add", *ALICE, "--topic", "a/b")


@pytest.mark.java
@pytest.mark.slow
def test_the_lines_are_those_of_kafka_acls(cli):
    flags = ("--operation", "Read", "--topic", "orders")
    theirs = printed("AclCommand", "--bootstrap-server", cli.bootstrap, "--add", *ALICE, *flags)
    ours = cli.lines("acls", "add", *ALICE, *flags)
    assert ours == theirs.splitlines()[: len(ours)]
    cli.run("acls", "add", *ALICE, "--consumer", "--topic", "logs", "--group", "g")
    # Theirs come in the order of a hash table.
    theirs = printed("AclCommand", "--bootstrap-server", cli.bootstrap, "--list")
    assert sorted(filter(None, cli.lines("acls", "list"))) == sorted(filter(None, theirs.splitlines()))
