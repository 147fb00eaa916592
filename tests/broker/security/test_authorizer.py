from __future__ import annotations

from itertools import product
from timeit import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.security import authorizer as authorizer_module
from odradek.broker.security.authorizer import AclAuthorizer, canonical_host, parse_super_users
from odradek.common.acls import (
    CLUSTER,
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    Resource,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)

ALICE, BOB, ANYBODY = "User:alice", "User:bob", "User:*"
HERE, THERE = "127.0.0.1", "10.0.0.9"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, DESCRIBE, ALL = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DESCRIBE,
    AclOperation.ALL,
)


def allow(principal: str, operation: AclOperation, host: str = "*") -> AccessControlEntry:
    return AccessControlEntry(principal, host, operation, AclPermissionType.ALLOW)


def deny(principal: str, operation: AclOperation, host: str = "*") -> AccessControlEntry:
    return AccessControlEntry(principal, host, operation, AclPermissionType.DENY)


def literal(name: str, kind: ResourceType = TOPIC) -> ResourcePattern:
    return ResourcePattern(kind, name)


def prefixed(name: str, kind: ResourceType = TOPIC) -> ResourcePattern:
    return ResourcePattern(kind, name, PatternType.PREFIXED)


def an_authorizer(*bindings: tuple[ResourcePattern, AccessControlEntry], **settings: bool) -> AclAuthorizer:
    made = AclAuthorizer(["User:root"], **settings)
    acls: dict[ResourcePattern, tuple[AccessControlEntry, ...]] = {}
    for pattern, entry in bindings:
        acls[pattern] = (*acls.get(pattern, ()), entry)
    made.replace_all(acls)
    return made


def can(
    made: AclAuthorizer,
    operation: AclOperation,
    name: str = "orders",
    *,
    principal: str = ALICE,
    host: str = HERE,
) -> bool:
    verdict = made.allows(principal, host, operation, Resource(TOPIC, name))
    assert made.allows(principal, host, operation, Resource(TOPIC, name)) is verdict
    return verdict


def test_without_acls_only_super_users_may_do_anything() -> None:
    made = an_authorizer()
    assert not can(made, READ)
    assert not made.allows(ALICE, HERE, AclOperation.ALTER, CLUSTER)
    assert can(made, READ, principal="User:root")
    assert made.allows_any("User:root", HERE, WRITE, TOPIC)


def test_everyone_is_allowed_where_no_acl_is_found_if_so_configured() -> None:
    made = an_authorizer((literal("secret"), allow(BOB, READ)), allow_everyone_if_no_acl_found=True)
    assert can(made, READ)
    assert not can(made, READ, "secret")
    assert made.allows_any(ALICE, HERE, WRITE, TOPIC)


def test_an_acl_holds_for_its_principal_operation_host_and_resource_only() -> None:
    made = an_authorizer((literal("orders"), allow(ALICE, READ, HERE)))
    assert can(made, READ)
    assert not can(made, WRITE)
    assert not can(made, READ, "orders2")
    assert not can(made, READ, principal=BOB)
    assert not can(made, READ, host=THERE)
    assert not made.allows(ALICE, HERE, READ, Resource(GROUP, "orders"))


def test_wildcards_hold_for_every_principal_host_and_name() -> None:
    made = an_authorizer((literal("*"), allow(ANYBODY, READ)))
    assert can(made, READ, "anything", principal=BOB, host=THERE)


def test_a_prefix_holds_for_every_name_that_begins_with_it() -> None:
    made = an_authorizer((prefixed("pay"), allow(ALICE, READ)), (prefixed("p"), allow(BOB, READ)))
    assert can(made, READ, "payments")
    assert can(made, READ, "pay")
    assert not can(made, READ, "pa")
    assert can(made, READ, "pa", principal=BOB)


def test_a_denial_wins_wherever_it_stands() -> None:
    made = an_authorizer(
        (literal("payments"), allow(ALICE, ALL)),
        (literal("orders"), allow(ALICE, ALL)),
        (prefixed("pay"), deny(ANYBODY, WRITE)),
        (literal("*"), deny(ALICE, ALL, THERE)),
    )
    assert can(made, READ, "payments")
    assert not can(made, WRITE, "payments")
    assert can(made, WRITE, "orders")
    assert not can(made, READ, "orders", host=THERE)


@pytest.mark.parametrize(
    ("granted", "asked", "is_allowed"),
    [
        (READ, DESCRIBE, True),
        (WRITE, DESCRIBE, True),
        (AclOperation.DELETE, DESCRIBE, True),
        (AclOperation.ALTER, DESCRIBE, True),
        (AclOperation.CREATE, DESCRIBE, False),
        (AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS, True),
        (AclOperation.ALTER_CONFIGS, DESCRIBE, False),
        (DESCRIBE, READ, False),
        (ALL, AclOperation.ALTER_CONFIGS, True),
    ],
)
def test_some_operations_imply_others(granted: AclOperation, asked: AclOperation, is_allowed: bool) -> None:
    assert can(an_authorizer((literal("orders"), allow(ALICE, granted))), asked) is is_allowed


def test_a_denied_operation_does_not_deny_what_it_would_imply() -> None:
    made = an_authorizer((literal("orders"), deny(ALICE, READ)), (literal("orders"), allow(ALICE, DESCRIBE)))
    assert can(made, DESCRIBE)
    assert not can(made, READ)


def test_a_verdict_is_forgotten_when_an_acl_changes() -> None:
    made = an_authorizer()
    assert not can(made, READ)
    made.update(literal("orders"), (allow(ALICE, READ),))
    assert can(made, READ)
    made.update(prefixed("ord"), (deny(ALICE, READ),))
    assert not can(made, READ)
    made.update(prefixed("ord"), ())
    assert can(made, READ)
    made.update(literal("orders"), ())
    assert not can(made, READ)
    assert made.acls(AclBindingFilter()) == []


def test_the_number_of_kept_verdicts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorizer_module, "MAX_VERDICTS", 10)
    made = an_authorizer((prefixed("topic-1"), allow(ALICE, READ)))
    for number in range(100):
        assert can(made, READ, f"topic-{number}") is str(number).startswith("1")
    assert len(made._verdicts) <= 10


def test_the_acls_that_a_filter_finds() -> None:
    made = an_authorizer(
        (literal("orders"), allow(ALICE, READ)),
        (prefixed("ord"), deny(BOB, WRITE)),
        (literal("orders", GROUP), allow(ALICE, READ)),
    )
    wanted = AclBindingFilter(ResourcePatternFilter(TOPIC, "orders", PatternType.MATCH))
    assert made.acls(wanted) == [
        AclBinding(literal("orders"), allow(ALICE, READ)),
        AclBinding(prefixed("ord"), deny(BOB, WRITE)),
    ]


@pytest.mark.parametrize(
    ("bindings", "is_allowed"),
    [
        ([], False),
        ([(literal("orders"), allow(ALICE, WRITE))], True),
        ([(literal("orders"), allow(ALICE, ALL))], True),
        ([(literal("orders"), allow(ALICE, READ))], False),
        ([(literal("orders"), allow(ALICE, WRITE, THERE))], False),
        ([(literal("orders", GROUP), allow(ALICE, WRITE))], False),
        ([(literal("orders"), allow(ALICE, WRITE)), (literal("orders"), deny(ALICE, WRITE))], False),
        ([(literal("orders"), allow(ALICE, WRITE)), (prefixed("ord"), deny(ALICE, WRITE))], False),
        ([(literal("orders"), allow(ALICE, WRITE)), (prefixed("orders2"), deny(ALICE, WRITE))], True),
        ([(prefixed("ord"), allow(ALICE, WRITE)), (literal("ord"), deny(ALICE, WRITE))], True),
        ([(prefixed("ord"), allow(ALICE, WRITE)), (prefixed("o"), deny(ALICE, WRITE))], False),
        ([(literal("*"), allow(ALICE, WRITE)), (prefixed("o"), deny(ALICE, WRITE))], True),
        ([(literal("orders"), allow(ALICE, WRITE)), (literal("*"), deny(ALICE, ALL))], False),
    ],
)
def test_whether_anything_of_a_type_is_allowed(
    bindings: list[tuple[ResourcePattern, AccessControlEntry]], is_allowed: bool
) -> None:
    assert an_authorizer(*bindings).allows_any(ALICE, HERE, WRITE, TOPIC) is is_allowed


def test_hosts_may_be_written_as_java_writes_them() -> None:
    made = an_authorizer((literal("orders"), allow(ALICE, READ, "0:0:0:0:0:0:0:1")))
    assert can(made, READ, host="::1")
    assert canonical_host("::ffff:10.0.0.9") == THERE
    assert canonical_host("not:an:address") == "not:an:address"
    assert canonical_host(HERE) == HERE


def test_super_users_are_separated_by_semicolons() -> None:
    assert parse_super_users("User:a,b; User:CN=x ;") == {"User:a,b", "User:CN=x"}
    assert parse_super_users("") == frozenset()


names = st.sampled_from(["a", "ab", "abc", "b", "*"])
patterns = st.builds(
    ResourcePattern,
    st.sampled_from([TOPIC, GROUP]),
    names,
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
)
entries = st.builds(
    AccessControlEntry,
    st.sampled_from([ALICE, BOB, ANYBODY]),
    st.sampled_from([HERE, THERE, "*"]),
    st.sampled_from([READ, WRITE, DESCRIBE, ALL]),
    st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
)


@given(bindings=st.lists(st.tuples(patterns, entries), max_size=8), is_open=st.booleans())
def test_verdicts_are_those_of_the_rules_written_out(
    bindings: list[tuple[ResourcePattern, AccessControlEntry]], is_open: bool
) -> None:
    made = an_authorizer(*bindings, allow_everyone_if_no_acl_found=is_open)
    for name, operation, principal, host in product(
        ["a", "abcd", "b", "c"], [READ, DESCRIBE], [ALICE, BOB], [HERE, THERE]
    ):
        wanted = ResourcePatternFilter(TOPIC, name, PatternType.MATCH)
        applying = [entry for pattern, entry in bindings if wanted.matches(pattern)]
        about = [
            entry
            for entry in applying
            if entry.principal in (principal, ANYBODY) and entry.host in (host, "*")
        ]
        implying = {operation, ALL} | ({READ, WRITE} if operation is DESCRIBE else set())
        is_denied = any(
            one.permission_type is AclPermissionType.DENY and one.operation in (operation, ALL)
            for one in about
        )
        is_granted = any(
            one.permission_type is AclPermissionType.ALLOW and one.operation in implying for one in about
        )
        expected = is_open if not applying else is_granted and not is_denied
        assert can(made, operation, name, principal=principal, host=host) is expected


def test_asking_again_costs_a_lookup_however_many_acls_there_are() -> None:
    made = an_authorizer(*((literal(f"topic-{n}"), allow(ALICE, READ)) for n in range(1000)))
    topic = Resource(TOPIC, "topic-500")
    ask = lambda: made.allows(ALICE, HERE, READ, topic)  # noqa: E731
    assert ask()
    # About 0.2 us; deciding anew costs some 5 us.
    assert min(timeit(ask, number=1000) for _ in range(20)) / 1000 < 2e-6
