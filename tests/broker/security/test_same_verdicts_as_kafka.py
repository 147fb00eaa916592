"""Kafka's own authorizer and ours decide alike, over random ACLs and questions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.java_tools import printed
from odradek.broker.security.authorizer import AclAuthorizer, parse_super_users
from odradek.common.acls import (
    CLUSTER_NAME,
    OPERATIONS,
    RESOURCE_TYPES,
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    Resource,
    ResourcePattern,
    ResourceType,
)
from odradek.coordination.payloads import Entries

pytestmark = [pytest.mark.java, pytest.mark.slow]

NAMES = ("a", "ab", "abc", "b", "bc", "*")
PRINCIPALS = ("User:alice", "User:bob", "User:*", "Group:alice")
HOSTS = ("10.0.0.1", "10.0.0.2", "*")
ROUNDS, QUESTIONS = 300, 60


class Round:
    """Some ACLs, and questions about them."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.super_users = rng.choice(("", "User:alice", "User:root;User:bob"))
        self.allows_everyone = rng.random() < 0.3
        self.acls = [self.an_acl() for _ in range(rng.choice((0, 1, 2, 4, 8)))]
        self.questions = [self.a_question() for _ in range(QUESTIONS)]

    def an_acl(self) -> tuple[ResourcePattern, AccessControlEntry]:
        rng, kind = self.rng, self.a_type()
        is_literal = kind is ResourceType.CLUSTER or rng.random() < 0.5
        name = (
            CLUSTER_NAME if kind is ResourceType.CLUSTER else rng.choice(NAMES if is_literal else NAMES[:-1])
        )
        pattern = ResourcePattern(kind, name, PatternType.LITERAL if is_literal else PatternType.PREFIXED)
        return pattern, AccessControlEntry(
            rng.choice(PRINCIPALS),
            rng.choice(HOSTS),
            self.an_operation(kind, AclOperation.ALL),
            rng.choice((AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY)),
        )

    def a_type(self) -> ResourceType:
        # Mostly topics, so that several ACLs meet at one.
        return ResourceType.TOPIC if self.rng.random() < 0.7 else self.rng.choice(RESOURCE_TYPES)

    def an_operation(self, kind: ResourceType, *more: AclOperation) -> AclOperation:
        return self.rng.choice((*OPERATIONS[kind], *more))

    def a_question(self) -> tuple[str, str, AclOperation, ResourceType, str]:
        kind = self.a_type()
        name = CLUSTER_NAME if kind is ResourceType.CLUSTER else self.rng.choice((*NAMES[:-1], "abcd", "z"))
        return (
            self.rng.choice(("User:alice", "User:bob", "User:eve", "Group:alice")),
            self.rng.choice(HOSTS[:-1]),
            self.an_operation(kind),
            kind,
            name,
        )

    def asks_for_any(self, operation: AclOperation) -> bool:
        """Kafka's two authorizers differ on what is implied, and on resources without ACLs, here only."""
        implied = (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
        return operation not in implied and not self.allows_everyone

    def lines(self) -> Iterator[str]:
        yield f"S\t{self.super_users}\t{str(self.allows_everyone).lower()}"
        for pattern, entry in dict.fromkeys(self.acls):
            words = (pattern.resource_type.name, pattern.name, pattern.pattern_type.name)
            more = (entry.principal, entry.host, entry.operation.name, entry.permission_type.name)
            yield "\t".join(("A", *words, *more))
        for principal, host, operation, kind, name in self.questions:
            yield "\t".join(("Q", principal, host, operation.name, kind.name, name))
            if self.asks_for_any(operation):
                yield "\t".join(("T", principal, host, operation.name, kind.name))

    def verdicts(self) -> Iterator[bool]:
        authorizer = AclAuthorizer(
            parse_super_users(self.super_users), allow_everyone_if_no_acl_found=self.allows_everyone
        )
        acls: dict[ResourcePattern, Entries] = {}
        for pattern, entry in dict.fromkeys(self.acls):
            acls[pattern] = (*acls.get(pattern, ()), entry)
        authorizer.replace_all(acls)
        for principal, host, operation, kind, name in self.questions:
            yield authorizer.allows(principal, host, operation, Resource(kind, name))
            if self.asks_for_any(operation):
                yield authorizer.allows_any(principal, host, operation, kind)


def test_kafka_decides_the_same(tmp_path: Path) -> None:
    rng = random.Random(19)
    rounds = [Round(rng) for _ in range(ROUNDS)]
    asked = [line for one in rounds for line in one.lines()]
    (tmp_path / "cases").write_text("\n".join(asked))
    theirs = kafka_decides(tmp_path / "cases")
    ours = [verdict for one in rounds for verdict in one.verdicts()]

    questions = [line for line in asked if line[0] in "QT"]
    assert len(theirs) == len(questions)
    differences = [line for line, a, b in zip(questions, ours, theirs, strict=True) if a != b]
    assert differences == []
    assert 0.1 < sum(ours) / len(ours) < 0.9  # both verdicts are common


def kafka_decides(cases: Path) -> list[bool]:
    source = Path(__file__).with_name("Verdicts.java")
    answers = printed("com.sun.tools.javac.launcher.Main", str(source), str(cases))
    return [line == "1" for line in answers.splitlines()]
