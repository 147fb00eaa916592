"""Settings of single groups, asked for and changed over the wire, and what they do to members."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.running import RunningBroker
from client.eventually import eventually
from odradek import Admin
from odradek.client.admin.base import require
from odradek.client.admin.configs import (
    AlterOperation,
    ConfigChange,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from odradek.client.broker_errors import InvalidConfig
from odradek.cluster.entity_configs import change_configs
from odradek.common.error_codes import ErrorCode
from odradek.coordination.paths import group_entity
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    FindCoordinatorRequest,
)

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
BOUNDS = (
    "group.consumer.min.session.timeout.ms=100",
    "group.consumer.min.heartbeat.interval.ms=10",
    "group.consumer.assignment.interval.ms=0",
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path_factory.mktemp("data"), *BOUNDS) as running:
        yield running


@pytest.fixture(scope="module")
def admin(broker: RunningBroker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as client:
        yield client


def group(name: str) -> ConfigResource:
    return ConfigResource(ResourceType.GROUP, name)


def configure(admin: Admin, name: str, **values: str) -> None:
    changes = [ConfigChange(key.replace("_", "."), text) for key, text in values.items()]
    require(admin.alter_configs({group(name): changes})[group(name)])


def reported(admin: Admin, name: str, key: str) -> tuple[str | None, ConfigSource]:
    entry = require(admin.describe_configs([group(name)])[group(name)])[key]
    return entry.value, entry.source


def beat(broker: RunningBroker, name: str, epoch: int = 0, member_id: str = "member") -> Any:
    """A heartbeat of the new protocol, once the coordinator is there."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=name,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=["unknown"],
        topic_partitions=[],
    )
    answers: list[Any] = []

    def is_answered() -> bool:
        broker.ask(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=[name]))
        answers.append(broker.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, request))
        return not ErrorCode(answers[-1].error_code).is_retriable

    eventually(is_answered)
    return answers[-1]


def members(broker: RunningBroker, name: str) -> list[str]:
    (described,) = broker.ask(
        ApiKey.CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest(group_ids=[name])
    ).groups
    return [member.member_id for member in described.members]


def test_members_get_the_interval_of_their_group_at_once(broker, admin):
    joined = beat(broker, "intervals")
    assert joined.heartbeat_interval_ms == 5000
    configure(admin, "intervals", consumer_heartbeat_interval_ms="700")
    assert beat(broker, "intervals", joined.member_epoch).heartbeat_interval_ms == 700
    assert beat(broker, "another").heartbeat_interval_ms == 5000
    require(
        admin.alter_configs({group("intervals"): [ConfigChange(HEARTBEAT, operation=AlterOperation.DELETE)]})[
            group("intervals")
        ]
    )
    assert beat(broker, "intervals", joined.member_epoch).heartbeat_interval_ms == 5000


def test_a_silent_member_is_dropped_after_the_session_of_its_group(broker, admin):
    configure(admin, "sessions", consumer_session_timeout_ms="100", consumer_heartbeat_interval_ms="50")
    assert beat(broker, "sessions").error_code == 0
    eventually(lambda: members(broker, "sessions") == [])


def test_groups_with_settings_are_listed_and_survive_a_restart(tmp_path: Path):
    names = ["a/b \u00fc", "..", "plain"]
    with RunningBroker(tmp_path, *BOUNDS) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        for name in names:
            configure(admin, name, consumer_session_timeout_ms="50000")
    with RunningBroker(tmp_path, *BOUNDS) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        listed = admin.list_config_resources([ResourceType.GROUP])
        assert listed == sorted(map(group, names))
        assert reported(admin, "a/b \u00fc", SESSION) == ("50000", ConfigSource.GROUP_CONFIG)
        configure(admin, "plain", consumer_heartbeat_interval_ms="900")
        assert beat(broker, "plain").heartbeat_interval_ms == 900
        deletion = [ConfigChange(name, operation=AlterOperation.DELETE) for name in (SESSION, HEARTBEAT)]
        require(admin.alter_configs({group("plain"): deletion})[group("plain")])
        assert group("plain") not in admin.list_config_resources([ResourceType.GROUP])


def test_what_a_foreign_tool_wrote_and_cannot_be_is_logged_and_not_applied(broker, caplog):
    def write(value: str) -> None:
        written = broker.look(
            lambda server: asyncio.run_coroutine_threadsafe(
                change_configs(server.node.store, group_entity("foreign"), lambda _: {HEARTBEAT: value}),
                server.services.loop,
            )
        )
        written.result(20)

    write("800")
    eventually(lambda: beat(broker, "foreign").heartbeat_interval_ms == 800)
    write("soon")
    eventually(lambda: beat(broker, "foreign").heartbeat_interval_ms == 5000)
    assert "the settings of group foreign are not applied: Invalid value soon" in caplog.text


def test_a_change_that_is_only_validated_changes_nothing(admin):
    changes = {group("validated"): [ConfigChange(SESSION, "50000")]}
    require(admin.alter_configs(changes, validate_only=True)[group("validated")])
    assert reported(admin, "validated", SESSION) == ("45000", ConfigSource.DEFAULT_CONFIG)


def test_a_refusal_changes_nothing(admin):
    with pytest.raises(InvalidConfig, match=r"must be less than or equal to group\.consumer\.max\.session"):
        configure(admin, "refused", consumer_session_timeout_ms="70000", consumer_heartbeat_interval_ms="900")
    assert reported(admin, "refused", HEARTBEAT) == ("5000", ConfigSource.DEFAULT_CONFIG)
