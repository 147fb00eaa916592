from __future__ import annotations

import pytest

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

ENTRY = AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)
ORDERS = ResourcePattern(ResourceType.TOPIC, "orders")
ALL_TOPICS = ResourcePattern(ResourceType.TOPIC, "*")
ORD = ResourcePattern(ResourceType.TOPIC, "ord", PatternType.PREFIXED)
ORDERS_GROUP = ResourcePattern(ResourceType.GROUP, "orders")
PATTERNS = (ORDERS, ALL_TOPICS, ORD, ORDERS_GROUP)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (ResourcePatternFilter(), PATTERNS),
        (ResourcePatternFilter(ResourceType.TOPIC), (ORDERS, ALL_TOPICS, ORD)),
        (ResourcePatternFilter(name="orders"), (ORDERS, ORDERS_GROUP)),
        (ResourcePatternFilter(ResourceType.TOPIC, "orders", PatternType.LITERAL), (ORDERS,)),
        (ResourcePatternFilter(ResourceType.TOPIC, "orders", PatternType.MATCH), (ORDERS, ALL_TOPICS, ORD)),
        (ResourcePatternFilter(ResourceType.TOPIC, "others", PatternType.MATCH), (ALL_TOPICS,)),
        (ResourcePatternFilter(ResourceType.TOPIC, "ord", PatternType.PREFIXED), (ORD,)),
        (ResourcePatternFilter(ResourceType.TOPIC, "orders", PatternType.PREFIXED), ()),
        (ResourcePatternFilter(ResourceType.TOPIC, "*", PatternType.LITERAL), (ALL_TOPICS,)),
        (ResourcePatternFilter(ResourceType.USER), ()),
    ],
)
def test_a_pattern_filter_finds_what_it_names(
    wanted: ResourcePatternFilter, found: tuple[ResourcePattern, ...]
) -> None:
    assert tuple(pattern for pattern in PATTERNS if wanted.matches(pattern)) == found


@pytest.mark.parametrize(
    ("wanted", "is_found"),
    [
        (AccessControlEntryFilter(), True),
        (AccessControlEntryFilter(principal="User:alice", host="*"), True),
        (AccessControlEntryFilter(principal="User:bob"), False),
        (AccessControlEntryFilter(host="10.0.0.1"), False),
        (AccessControlEntryFilter(operation=AclOperation.READ), True),
        (AccessControlEntryFilter(operation=AclOperation.ALL), False),
        (AccessControlEntryFilter(permission_type=AclPermissionType.DENY), False),
    ],
)
def test_an_entry_filter_finds_what_it_names(wanted: AccessControlEntryFilter, is_found: bool) -> None:
    assert wanted.matches(ENTRY) is is_found
    assert AclBindingFilter(entry=wanted).matches(AclBinding(ORDERS, ENTRY)) is is_found


def test_a_number_without_a_name_is_unknown() -> None:
    assert AclOperation(99) is AclOperation.UNKNOWN
    assert ResourceType(-1) is ResourceType.UNKNOWN


def test_titles_are_the_words_of_the_znodes() -> None:
    assert AclOperation.IDEMPOTENT_WRITE.title == "IdempotentWrite"
    assert ResourceType.TRANSACTIONAL_ID.title == "TransactionalId"
