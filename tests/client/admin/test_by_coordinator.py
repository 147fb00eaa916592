"""Questions that go to the coordinators of groups, while coordinators move and load."""

from __future__ import annotations

import pytest

from client.scripted_broker import SERVED, ScriptedBroker, api_versions, run
from odradek.client.admin.admin import AsyncAdmin
from odradek.client.admin.groups import GroupState, GroupType
from odradek.client.broker_errors import (
    CoordinatorLoadInProgress,
    GroupAuthorizationFailed,
    GroupIdNotFound,
)
from odradek.client.errors import UnsupportedByBroker
from odradek.common.error_codes import ErrorCode
from odradek.common.ids import TopicPartition
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    ApiVersionsResponse,
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    FindCoordinatorResponse,
    ListGroupsResponse,
    OffsetCommitResponse,
)
from odradek.protocol.structs import Message

GROUP_APIS = (ApiKey.LIST_GROUPS, ApiKey.DESCRIBE_GROUPS, ApiKey.DELETE_GROUPS, ApiKey.OFFSET_COMMIT)
PARTITION = TopicPartition("orders", 0)


class Coordinating:
    """Two brokers, one of which coordinates every group."""

    def __init__(self, one: ScriptedBroker, two: ScriptedBroker) -> None:
        self.coordinator, self.brokers = one, [one, two]
        for broker in self.brokers:
            broker.cluster = self.brokers
            broker.say[ApiKey.API_VERSIONS] = lambda _: api_versions(*SERVED, *GROUP_APIS)
            broker.say[ApiKey.FIND_COORDINATOR] = self.find

    def find(self, request: Message) -> Message:
        row_class = FindCoordinatorResponse.Coordinators
        node_id, port = self.coordinator.node_id, self.coordinator.port
        rows = [
            row_class(key=key, node_id=node_id, host="127.0.0.1", port=port)
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=rows)


def described(state: str, error_code: int = ErrorCode.NONE) -> DescribeGroupsResponse:
    row = DescribeGroupsResponse.Groups(group_id="billing", group_state=state, error_code=error_code)
    return DescribeGroupsResponse(groups=[row])


def test_a_question_follows_the_coordinator():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one, ScriptedBroker(2) as two:
            coordinating = Coordinating(one, two)

            def no_longer(_: Message) -> Message:
                coordinating.coordinator = two
                return described("", ErrorCode.NOT_COORDINATOR)

            one.say[ApiKey.DESCRIBE_GROUPS] = no_longer
            two.say[ApiKey.DESCRIBE_GROUPS] = lambda _: described("Empty")
            async with AsyncAdmin(bootstrap_servers=one.address, retry_backoff_ms=1) as admin:
                found = await admin.describe_group("billing")
            assert (found.state, found.coordinator.node_id) == (GroupState.EMPTY, 2)

    run(scenario())


def test_a_coordinator_that_hangs_up_is_looked_for_again():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one, ScriptedBroker(2) as two:
            coordinating = Coordinating(one, two)

            def hang_up(_: Message) -> None:
                coordinating.coordinator = two

            one.say[ApiKey.DELETE_GROUPS] = hang_up
            row = DeleteGroupsResponse.Results(group_id="billing")
            two.say[ApiKey.DELETE_GROUPS] = lambda _: DeleteGroupsResponse(results=[row])
            async with AsyncAdmin(bootstrap_servers=one.address, retry_backoff_ms=1) as admin:
                await admin.delete_group("billing")

    run(scenario())


def test_offsets_are_committed_again_where_the_coordinator_went():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one, ScriptedBroker(2) as two:
            coordinating = Coordinating(one, two)

            def answer(error_code: int) -> Message:
                row = OffsetCommitResponse.Topics.Partitions(partition_index=0, error_code=error_code)
                return OffsetCommitResponse(
                    topics=[OffsetCommitResponse.Topics(name="orders", partitions=[row])]
                )

            def no_longer(_: Message) -> Message:
                coordinating.coordinator = two
                return answer(ErrorCode.NOT_COORDINATOR)

            one.say[ApiKey.OFFSET_COMMIT] = no_longer
            two.say[ApiKey.OFFSET_COMMIT] = lambda _: answer(ErrorCode.NONE)
            async with AsyncAdmin(bootstrap_servers=one.address, retry_backoff_ms=1) as admin:
                assert await admin.alter_group_offsets("billing", {PARTITION: 5}) == {PARTITION: None}

    run(scenario())


def test_a_coordinator_that_never_gets_ready_is_an_error_when_the_time_is_over():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one, ScriptedBroker(2) as two:
            Coordinating(one, two)
            one.say[ApiKey.DESCRIBE_GROUPS] = lambda _: described("", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            async with AsyncAdmin(bootstrap_servers=one.address, retry_backoff_ms=1) as admin:
                found = await admin.describe_groups(["billing"], timeout_ms=100)
            assert isinstance(found["billing"], CoordinatorLoadInProgress)

    run(scenario())


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (described("Dead"), GroupIdNotFound),
        (described("", ErrorCode.GROUP_AUTHORIZATION_FAILED), GroupAuthorizationFailed),
    ],
)
def test_a_refusal_is_not_repeated(answer, error):
    async def scenario() -> None:
        async with ScriptedBroker(1) as one, ScriptedBroker(2) as two:
            Coordinating(one, two)
            one.say[ApiKey.DESCRIBE_GROUPS] = lambda _: answer
            async with AsyncAdmin(bootstrap_servers=one.address) as admin:
                assert isinstance((await admin.describe_groups(["billing"]))["billing"], error)
            assert [key for key, _, _ in one.asked].count(ApiKey.DESCRIBE_GROUPS) == 1

    run(scenario())


def test_every_broker_is_asked_for_its_groups():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one, ScriptedBroker(2) as two:
            Coordinating(one, two)
            for broker, names in ((one, ["b", "c"]), (two, ["a", "c"])):
                rows = [
                    ListGroupsResponse.Groups(group_id=name, protocol_type="consumer", group_state="Novel")
                    for name in names
                ]
                answers = [
                    ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
                    ListGroupsResponse(groups=rows),
                    ListGroupsResponse(groups=rows),
                ]
                broker.say[ApiKey.LIST_GROUPS] = lambda _, answers=answers: answers.pop(0)
            async with AsyncAdmin(bootstrap_servers=one.address, retry_backoff_ms=1) as admin:
                listed = await admin.list_groups()
            assert [group.group_id for group in listed] == ["a", "b", "c"]
            assert {group.state for group in listed} == {GroupState.UNKNOWN}

    run(scenario())


def test_a_broker_too_old_for_a_filter_says_so_or_has_only_classic_groups():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one, ScriptedBroker(2) as two:
            Coordinating(one, two)
            rows = [ListGroupsResponse.Groups(group_id="billing", protocol_type="consumer")]
            for broker in (one, two):
                broker.say[ApiKey.API_VERSIONS] = lambda _: with_list_groups_up_to(3)
                broker.say[ApiKey.LIST_GROUPS] = lambda _: ListGroupsResponse(groups=rows)
            async with AsyncAdmin(bootstrap_servers=one.address) as admin:
                (listed,) = await admin.list_groups(types=["Classic"])
                assert await admin.list_groups(types=["Consumer"]) == []
                with pytest.raises(UnsupportedByBroker, match="4 or later for states"):
                    await admin.list_groups(states=["Empty"])
            assert (listed.group_type, listed.state) == (GroupType.CLASSIC, GroupState.UNKNOWN)

    run(scenario())


def with_list_groups_up_to(version: int) -> ApiVersionsResponse:
    answer = api_versions(*SERVED, *GROUP_APIS)
    for row in answer.api_keys:
        if row.api_key == ApiKey.LIST_GROUPS:
            row.max_version = version
    return answer


def test_what_a_foreign_leader_assigned_need_not_be_readable():
    async def scenario() -> None:
        async with ScriptedBroker(1) as one, ScriptedBroker(2) as two:
            Coordinating(one, two)
            rows = DescribeGroupsResponse.Groups
            members = [
                rows.Members(member_id=name, client_id=name, client_host="/h", member_assignment=content)
                for name, content in (
                    ("short", b"\x00"),
                    ("huge-count", b"\x00\x03\x7f\xff\xff\xff"),
                    ("none", b""),
                )
            ]
            row = rows(group_id="billing", group_state="Stable", protocol_type="consumer", members=members)
            one.say[ApiKey.DESCRIBE_GROUPS] = lambda _: DescribeGroupsResponse(groups=[row])
            async with AsyncAdmin(bootstrap_servers=one.address) as admin:
                found = await admin.describe_group("billing")
            assert [(member.client_id, member.assignment) for member in found.members] == [
                ("short", frozenset()),
                ("huge-count", frozenset()),
                ("none", frozenset()),
            ]

    run(scenario())
