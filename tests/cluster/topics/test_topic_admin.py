from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping

import pytest

from odradek.cluster.membership.membership import ensure_persistent_paths
from odradek.cluster.topics.new_topics import NewTopic
from odradek.cluster.topics.placement import BrokerLocation
from odradek.cluster.topics.topic_admin import TopicAdmin, TopicDefaults
from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError
from odradek.coordination import paths
from odradek.coordination.payloads import TopicAssignment, decode_config
from odradek.testing.memory_store import MemoryEnsemble, MemoryStore


def refuse_unknown(topic: str, configs: Mapping[str, str]) -> None:
    if "unknown" in configs:
        raise KafkaError("Unknown topic config name: unknown", error_code=ErrorCode.INVALID_CONFIG)


def with_admin(
    scenario: Callable[[TopicAdmin, MemoryStore], Awaitable[None]],
    defaults: TopicDefaults | None = None,
) -> None:
    async def run() -> None:
        store = MemoryEnsemble().open_session()
        await ensure_persistent_paths(store)
        admin = TopicAdmin(
            lambda: store,
            lambda: [BrokerLocation(id_) for id_ in range(3)],
            defaults=defaults,
            check_configs=refuse_unknown,
            rng=random.Random(1),
        )
        await scenario(admin, store)

    asyncio.run(run())


def test_a_topic_is_written_with_its_id_and_settings():
    async def scenario(admin: TopicAdmin, store: MemoryStore) -> None:
        created = await admin.create_topic(NewTopic("t", 4, 2, configs={"retention.ms": "5"}))
        written = TopicAssignment.decode((await store.get("/brokers/topics/t")).payload)
        assert written.topic_id == created.topic_id
        assert {index: one.replicas for index, one in written.partitions.items()} == created.assignment
        assert sorted(created.assignment) == [0, 1, 2, 3]
        assert await admin.read_configs("t") == {"retention.ms": "5"}
        assert await store.children(paths.CONFIG_CHANGES) == []

    with_admin(scenario)


def test_defaults_count_where_nothing_is_said():
    async def scenario(admin: TopicAdmin, store: MemoryStore) -> None:
        created = await admin.create_topic(NewTopic("t"))
        assert {len(ids) for ids in created.assignment.values()} == {2}
        assert len(created.assignment) == 5

    with_admin(scenario, TopicDefaults(num_partitions=5, default_replication_factor=2))


def test_validation_alone_writes_nothing():
    async def scenario(admin: TopicAdmin, store: MemoryStore) -> None:
        created = await admin.create_topic(NewTopic("t", 2, 1), validate_only=True)
        assert (created.topic_id, sorted(created.assignment)) == (None, [0, 1])
        assert await store.children(paths.TOPICS) == []
        assert await store.children("/config/topics") == []

    with_admin(scenario)


E = ErrorCode


@pytest.mark.parametrize(
    ("topic", "error", "words"),
    [
        (NewTopic("there", 1, 1), E.TOPIC_ALREADY_EXISTS, "Topic 'there' already exists."),
        (NewTopic("dot_ted", 1, 1), E.INVALID_TOPIC_EXCEPTION, "collides with existing topic: dot.ted"),
        (NewTopic("../x", 1, 1), E.INVALID_TOPIC_EXCEPTION, ""),
        (NewTopic(".", 1, 1), E.INVALID_TOPIC_EXCEPTION, ""),
        (NewTopic("..", 1, 1), E.INVALID_TOPIC_EXCEPTION, ""),
        (NewTopic("", 1, 1), E.INVALID_TOPIC_EXCEPTION, ""),
        (NewTopic("x" * 250, 1, 1), E.INVALID_TOPIC_EXCEPTION, "249"),
        (NewTopic("t", 0, 1), E.INVALID_PARTITIONS, ""),
        (NewTopic("t", -2, 1), E.INVALID_PARTITIONS, ""),
        (NewTopic("t", 1, 0), E.INVALID_REPLICATION_FACTOR, ""),
        (
            NewTopic("t", 1, 4),
            E.INVALID_REPLICATION_FACTOR,
            "Replication factor: 4 larger than available brokers: 3.",
        ),
        (NewTopic("t", 1, assignment={0: [0]}), E.INVALID_REQUEST, "Both numPartitions"),
        (NewTopic("t", assignment={0: [0], 2: [0]}), E.INVALID_REPLICA_ASSIGNMENT, "consecutive"),
        (NewTopic("t", assignment={0: [0, 0]}), E.INVALID_REPLICA_ASSIGNMENT, "more than once"),
        (NewTopic("t", assignment={0: [9]}), E.INVALID_REPLICA_ASSIGNMENT, "no such broker"),
        (NewTopic("t", assignment={0: []}), E.INVALID_REPLICA_ASSIGNMENT, "empty"),
        (NewTopic("t", assignment={0: [0], 1: [0, 1]}), E.INVALID_REPLICA_ASSIGNMENT, "not consistent"),
        (NewTopic("t", 1, 1, configs={"unknown": "1"}), E.INVALID_CONFIG, "Unknown topic config"),
    ],
)
def test_what_kafka_refuses_is_refused(topic, error, words):
    async def scenario(admin: TopicAdmin, store: MemoryStore) -> None:
        await admin.create_topic(NewTopic("there", 1, 1))
        await admin.create_topic(NewTopic("dot.ted", 1, 1))
        for validate_only in (True, False):
            with pytest.raises(KafkaError) as caught:
                await admin.create_topic(topic, validate_only=validate_only)
            assert caught.value.error_code is error
            assert words in str(caught.value)
        assert await store.children(paths.TOPICS) == ["dot.ted", "there"]

    with_admin(scenario)


def test_settings_left_by_an_earlier_topic_are_replaced():
    async def scenario(admin: TopicAdmin, store: MemoryStore) -> None:
        await store.create("/config/topics/t", b'{"version":1,"config":{"retention.ms":"1"}}')
        await admin.create_topic(NewTopic("t", 1, 1))
        assert await admin.read_configs("t") == {}

    with_admin(scenario)


def test_two_who_create_one_topic_at_once_get_one_topic_and_one_error():
    async def scenario(admin: TopicAdmin, store: MemoryStore) -> None:
        results = await asyncio.gather(
            *(admin.create_topic(NewTopic("t", 1, 1)) for _ in range(5)), return_exceptions=True
        )
        errors = [one.error_code for one in results if isinstance(one, KafkaError)]
        assert errors == [ErrorCode.TOPIC_ALREADY_EXISTS] * 4

    with_admin(scenario)


def test_a_deletion_is_left_in_the_store_for_the_controller():
    async def scenario(admin: TopicAdmin, store: MemoryStore) -> None:
        await admin.create_topic(NewTopic("t", 1, 1))
        await admin.delete_topic("t")
        await admin.delete_topic("t")
        assert await store.children(paths.DELETE_TOPICS) == ["t"]
        with pytest.raises(KafkaError, match="marked for deletion") as caught:
            await admin.create_topic(NewTopic("t", 1, 1))
        assert caught.value.error_code is ErrorCode.TOPIC_ALREADY_EXISTS
        for name in ("none", "../t", "t/partitions", ""):
            with pytest.raises(KafkaError) as caught:
                await admin.delete_topic(name)
            assert caught.value.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    with_admin(scenario)


def test_deletion_can_be_forbidden():
    async def scenario(admin: TopicAdmin, store: MemoryStore) -> None:
        await admin.create_topic(NewTopic("t", 1, 1))
        with pytest.raises(KafkaError) as caught:
            await admin.delete_topic("t")
        assert caught.value.error_code is ErrorCode.TOPIC_DELETION_DISABLED

    with_admin(scenario, TopicDefaults(is_delete_topic_enabled=False))


def test_partitions_are_added_beside_those_that_stay():
    async def scenario(admin: TopicAdmin, store: MemoryStore) -> None:
        created = await admin.create_topic(NewTopic("t", 2, 2))
        assert sorted(await admin.create_partitions("t", 4, validate_only=True)) == [2, 3]
        added = await admin.create_partitions("t", 4)
        added |= await admin.create_partitions("t", 5, [[2, 0]])
        written = TopicAssignment.decode((await store.get("/brokers/topics/t")).payload)
        assert written.topic_id == created.topic_id
        replicas = {index: one.replicas for index, one in written.partitions.items()}
        assert replicas == created.assignment | added
        assert replicas[4] == (2, 0)

    with_admin(scenario)


@pytest.mark.parametrize(
    ("name", "count", "manual", "error", "words"),
    [
        ("none", 3, None, E.UNKNOWN_TOPIC_OR_PARTITION, "does not exist"),
        ("t", 2, None, E.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        (
            "t",
            1,
            None,
            E.INVALID_PARTITIONS,
            "currently has 2 partition(s); 1 would not be an increase",
        ),
        ("t", 4, [[0, 1]], E.INVALID_REPLICA_ASSIGNMENT, "only 1 assignment(s)"),
        ("t", 3, [[0]], E.INVALID_REPLICA_ASSIGNMENT, "not consistent"),
        ("t", 3, [[0, 9]], E.INVALID_REPLICA_ASSIGNMENT, "no such broker"),
        ("t", 3, [[0, 0]], E.INVALID_REPLICA_ASSIGNMENT, "more than once"),
        ("moving", 3, None, E.REASSIGNMENT_IN_PROGRESS, "reassigned"),
        ("gap", 3, None, E.INVALID_REPLICA_ASSIGNMENT, "numbered"),
    ],
)
def test_partitions_that_cannot_be_added_are_refused(name, count, manual, error, words):
    async def scenario(admin: TopicAdmin, store: MemoryStore) -> None:
        await admin.create_topic(NewTopic("t", 2, 2))
        moving = b'{"version":3,"partitions":{"0":[0,1]},"adding_replicas":{"0":[1]},"removing_replicas":{}}'
        await store.create(paths.topic("moving"), moving)
        await store.create(paths.topic("gap"), b'{"version":1,"partitions":{"1":[0]}}')
        with pytest.raises(KafkaError) as caught:
            await admin.create_partitions(name, count, manual)
        assert caught.value.error_code is error
        assert words in str(caught.value)

    with_admin(scenario)


def test_settings_change_with_a_note_for_every_broker():
    async def scenario(admin: TopicAdmin, store: MemoryStore) -> None:
        await admin.create_topic(NewTopic("t", 1, 1, configs={"a": "1", "b": "2"}))
        changed = await admin.change_configs("t", lambda old: {**old, "a": "3"})
        assert changed == {"a": "3", "b": "2"}
        assert decode_config((await store.get("/config/topics/t")).payload) == changed
        (note,) = await store.children(paths.CONFIG_CHANGES)
        payload = (await store.get(f"{paths.CONFIG_CHANGES}/{note}")).payload
        assert payload == b'{"version":2,"entity_path":"topics/t"}'

        assert await admin.change_configs("t", lambda _: {}, validate_only=True) == {}
        assert await admin.read_configs("t") == changed
        with pytest.raises(KafkaError):
            await admin.change_configs("t", lambda _: {"unknown": "1"})
        with pytest.raises(KafkaError):
            await admin.change_configs("none", lambda _: {})

    with_admin(scenario)


def test_changes_made_at_once_are_all_kept():
    async def scenario(admin: TopicAdmin, store: MemoryStore) -> None:
        await admin.create_topic(NewTopic("t", 1, 1))
        await asyncio.gather(
            *(admin.change_configs("t", lambda old, n=n: {**old, f"k{n}": "v"}) for n in range(10))
        )
        assert len(await admin.read_configs("t")) == 10

    with_admin(scenario)
