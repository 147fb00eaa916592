"""Questions about the cluster: ApiVersions, Metadata, topics, partitions, settings.

Each scenario is asked in order, on topics that nobody else has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat.compared_requests import ApiRequest
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    AlterConfigsRequest,
    ApiVersionsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
    MetadataRequest,
)

Topic = CreateTopicsRequest.Topics
TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
NO_ID = frozenset({"topic_id"})


def topic(name: str, partitions: int = 1, replicas: int = 1, **fields: Any) -> Topic:
    return Topic(name=name, num_partitions=partitions, replication_factor=replicas, **fields)


def create(name: str, *topics: Topic, version: int = 7, apart: frozenset[str] = frozenset(), **fields: Any):
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=30_000, **fields)
    return ApiRequest(name, ApiKey.CREATE_TOPICS, version, request, apart)


def api_versions() -> list[ApiRequest]:
    # What is served differs; tests/broker/test_edge_cases.py looks at it.
    served = frozenset(
        {
            "api_keys",
            "supported_features",
            "finalized_features",
            "finalized_features_epoch",
            "zk_migration_ready",
        }
    )
    asked = [
        ApiRequest("everything", ApiKey.API_VERSIONS, version, ApiVersionsRequest(), served)
        for version in (0, 1, 2)
    ]
    names = [
        ("test", "1.0"),
        ("", ""),
        ("test", ""),
        ("a b", "1"),
        ("-a", "1"),
        ("a-", "1"),
        ("a.b-c", "1.0-x"),
    ]
    asked += [
        ApiRequest(
            f"{software!r} {number!r}",
            ApiKey.API_VERSIONS,
            version,
            ApiVersionsRequest(client_software_name=software, client_software_version=number),
            served,
        )
        for version in (3, 4)
        for software, number in names
    ]
    return asked


def metadata() -> list[ApiRequest]:
    def ask(name: str, version: int, *names: str, **fields: Any) -> ApiRequest:
        topics = [MetadataRequest.Topics(name=one) for one in names]
        return ApiRequest(name, ApiKey.METADATA, version, MetadataRequest(topics=topics, **fields))

    def by_id(topic_id: bytes, version: int) -> ApiRequest:
        request = MetadataRequest(topics=[MetadataRequest.Topics(name=None, topic_id=topic_id)])
        return ApiRequest(f"by id {topic_id[:1]!r}", ApiKey.METADATA, version, request)

    declined = {"allow_auto_topic_creation": False}
    return [
        create("make it", topic("metadata", 3)),
        *(ask("one topic", version, "metadata") for version in range(14)),
        *(ask("no topics", version) for version in range(1, 14)),
        *(ask("an unknown one", version, "unknown", **declined) for version in range(4, 14)),
        *(ask("known and unknown", version, "metadata", "unknown", **declined) for version in (4, 13)),
        *(ask("twice", version, "metadata", "metadata") for version in (4, 13)),
        *(ask("an impossible one", version, "../x", "a b", "", ".", "x" * 250) for version in (1, 4, 9, 13)),
        *(
            ask("which operations", version, "metadata", include_topic_authorized_operations=True)
            for version in (8, 12)
        ),
        ask("which operations of the cluster", 8, "metadata", include_cluster_authorized_operations=True),
        *(by_id(b"\7" * 16, version) for version in (12, 13)),
    ]


def made_by_asking() -> list[ApiRequest]:
    """Kafka may give the first answer too early, so only that the topic is there in the end is compared."""
    asked = ApiRequest(
        "it is made",
        ApiKey.METADATA,
        9,
        MetadataRequest(topics=[MetadataRequest.Topics(name="made-by-asking")]),
        frozenset({"topics"}),
    )
    found = MetadataRequest(
        topics=[MetadataRequest.Topics(name="made-by-asking")], allow_auto_topic_creation=False
    )
    return [
        asked,
        create("it exists", topic("made-by-asking")),
        ApiRequest("it is there", ApiKey.METADATA, 9, found),
    ]


def creation() -> list[ApiRequest]:
    configs = Topic.Configs
    replicas = [Topic.Assignments(partition_index=index, broker_ids=[0]) for index in (0, 1)]
    bad_topics = {
        "no name": topic(""),
        "a dot": topic("."),
        "two dots": topic(".."),
        "a path": topic("../x"),
        "a space": topic("a b"),
        "an umlaut": topic("größe"),
        "249 characters": topic("x" * 249),
        "250 characters": topic("x" * 250),
        "no partitions": topic("bad", 0),
        "-2 partitions": topic("bad", -2),
        "no replicas": topic("bad", 1, 0),
        "two replicas": topic("bad", 1, 2),
        "-2 replicas": topic("bad", 1, -2),
        "an unknown setting": topic("bad", configs=[configs(name="retention.mss", value="1")]),
        "a bad value": topic("bad", configs=[configs(name="retention.ms", value="soon")]),
        "a value out of range": topic("bad", configs=[configs(name="retention.ms", value="-2")]),
        "a null value": topic("bad", configs=[configs(name="retention.ms", value=None)]),
        "an unknown policy": topic("bad", configs=[configs(name="cleanup.policy", value="burn")]),
        "numbers and replicas": topic("bad", 2, 1, assignments=replicas),
        "a replica that is not": topic(
            "bad", -1, -1, assignments=[Topic.Assignments(partition_index=0, broker_ids=[9])]
        ),
        "a replica twice": topic(
            "bad", -1, -1, assignments=[Topic.Assignments(partition_index=0, broker_ids=[0, 0])]
        ),
        "no replica": topic("bad", -1, -1, assignments=[Topic.Assignments(partition_index=0, broker_ids=[])]),
        "a gap": topic("bad", -1, -1, assignments=[Topic.Assignments(partition_index=1, broker_ids=[0])]),
    }
    # Kafka returns an id for a topic that it does not make.
    asked = [create(name, one, validate_only=True, apart=NO_ID) for name, one in bad_topics.items()]
    return [
        *asked,
        *(create(name, one, version=2) for name, one in bad_topics.items() if one.name == "bad"),
        create("none", validate_only=False),
        create("the same twice", topic("twice"), topic("twice", 2)),
        create("only to see", topic("created", 3), validate_only=True, apart=NO_ID),
        create("for real", topic("created", 3, configs=[configs(name="retention.ms", value="1000")])),
        create("again", topic("created", 3)),
        create("only to see that it is there", topic("created", 3), validate_only=True),
        create("a dot like an underscore", topic("a.b")),
        create("that collides", topic("a_b")),
        create("defaults", topic("defaults", -1, -1)),
        create("by hand", topic("by-hand", -1, -1, assignments=replicas)),
        *(
            create(f"version {version}", topic(f"version-{version}"), version=version)
            for version in range(2, 8)
        ),
        create("one good, one bad", topic("good"), topic("..")),
    ]


def growth() -> list[ApiRequest]:
    def grow(name: str, count: int, version: int = 3, **fields: Any) -> ApiRequest:
        assignments = fields.pop("assignments", None)
        rows = None
        if assignments is not None:
            rows = [CreatePartitionsRequest.Topics.Assignments(broker_ids=ids) for ids in assignments]
        asked = CreatePartitionsRequest.Topics(name=name, count=count, assignments=rows)
        request = CreatePartitionsRequest(
            topics=[asked], timeout_ms=30_000, **({"validate_only": False} | fields)
        )
        return ApiRequest(f"{name} to {count}", ApiKey.CREATE_PARTITIONS, version, request)

    twice = CreatePartitionsRequest.Topics(name="grown", count=9, assignments=None)
    both = CreatePartitionsRequest(topics=[twice, twice], timeout_ms=1000, validate_only=False)
    return [
        create("make it", topic("grown", 2)),
        grow("grown", 3, validate_only=True),
        *(grow("grown", count, version) for count, version in ((3, 0), (4, 1), (5, 2), (6, 3))),
        *(grow("grown", count) for count in (6, 5, 0, -1)),
        grow("unknown", 3),
        grow("../x", 3),
        grow("grown", 7, assignments=[[0]]),
        grow("grown", 9, assignments=[[0]]),
        grow("grown", 8, assignments=[[7]]),
        grow("grown", 8, assignments=[[0, 0]]),
        grow("grown", 8, assignments=[[]]),
        ApiRequest("the same twice", ApiKey.CREATE_PARTITIONS, 3, both),
        ApiRequest(
            "none", ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest(timeout_ms=1000, validate_only=False)
        ),
        ApiRequest(
            "how many there are",
            ApiKey.METADATA,
            9,
            MetadataRequest(topics=[MetadataRequest.Topics(name="grown")]),
        ),
    ]


def deletion() -> list[ApiRequest]:
    def by_name(*names: str, version: int = 5) -> ApiRequest:
        request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=30_000)
        return ApiRequest(f"delete {names}", ApiKey.DELETE_TOPICS, version, request)

    def newest(what: str, **fields: Any) -> ApiRequest:
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.Topics(**fields)], timeout_ms=30_000)
        return ApiRequest(what, ApiKey.DELETE_TOPICS, 6, request)

    return [
        *(create("make it", topic(f"doomed-{version}")) for version in range(1, 7)),
        *(by_name(f"doomed-{version}", version=version) for version in range(1, 6)),
        newest("by name", name="doomed-6"),
        by_name("unknown"),
        by_name("../x", ""),
        by_name(),
        newest("an unknown id", name=None, topic_id=b"\7" * 16),
        newest("neither", name=None),
        newest("both", name="doomed-6", topic_id=b"\7" * 16),
        by_name("unknown", "unknown"),
    ]


def settings() -> list[ApiRequest]:
    def incremental(
        name: str, *configs: tuple[str, int, str | None], kind: int = TOPIC, **fields: Any
    ) -> ApiRequest:
        row = IncrementalAlterConfigsRequest.Resources
        rows = [row.Configs(name=key, config_operation=what, value=value) for key, what, value in configs]
        asked = row(resource_type=kind, resource_name=name, configs=rows)
        request = IncrementalAlterConfigsRequest(resources=[asked], **({"validate_only": False} | fields))
        return ApiRequest(f"change {configs} of {name!r}", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)

    def replaced(name: str, **configs: str | None) -> ApiRequest:
        row = AlterConfigsRequest.Resources
        rows = [row.Configs(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        asked = row(resource_type=TOPIC, resource_name=name, configs=rows)
        request = AlterConfigsRequest(resources=[asked], validate_only=False)
        return ApiRequest(f"replace by {configs} of {name}", ApiKey.ALTER_CONFIGS, 2, request)

    def describe(
        name: str = "settings", *keys: str, kind: int = TOPIC, version: int = 4, **fields: Any
    ) -> ApiRequest:
        asked = DescribeConfigsRequest.Resources(
            resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
        )
        request = DescribeConfigsRequest(resources=[asked], **fields)
        return ApiRequest(f"describe {name!r} {keys}", ApiKey.DESCRIBE_CONFIGS, version, request, TOLD)

    # Texts for people are our own.
    TOLD = frozenset({"documentation"})  # noqa: N806
    policy, retention = "cleanup.policy", "retention.ms"
    return [
        create("make it", topic("settings")),
        *(describe(version=version) for version in (1, 2, 3, 4)),
        describe(include_synonyms=True),
        describe("settings", retention, "no.such.setting"),
        incremental("settings", (policy, APPEND, "compact")),
        describe("settings", policy, include_synonyms=True),
        incremental("settings", (policy, APPEND, "compact")),
        describe("settings", policy),
        incremental("settings", (policy, SUBTRACT, "delete")),
        describe("settings", policy),
        incremental("settings", (policy, SUBTRACT, "unknown")),
        incremental("settings", (policy, SUBTRACT, "compact")),
        describe("settings", policy),
        incremental("settings", (policy, DELETE, None)),
        describe("settings", policy),
        incremental("settings", (retention, SET, "5000"), validate_only=True),
        incremental("settings", (retention, SET, "5000"), ("segment.ms", SET, "6000")),
        describe("settings", retention, "segment.ms"),
        incremental("settings", (retention, SET, "soon")),
        incremental("settings", (retention, SET, None)),
        incremental("settings", (retention, APPEND, "1")),
        incremental("settings", (retention, SUBTRACT, "1")),
        incremental("settings", ("retention.mss", SET, "1")),
        incremental("settings", ("retention.mss", DELETE, None)),
        incremental("settings", (retention, SET, "1"), (retention, SET, "2")),
        incremental("settings"),
        incremental("unknown", (retention, SET, "1")),
        incremental("../x", (retention, SET, "1")),
        incremental("", (retention, SET, "1")),
        incremental("settings", (retention, SET, "1"), kind=3),
        incremental("7", ("log.retention.ms", SET, "1"), kind=BROKER),
        incremental("seven", ("log.retention.ms", SET, "1"), kind=BROKER),
        incremental("0", ("broker.id", SET, "1"), kind=BROKER),
        incremental("0", ("log.retention.ms", SET, "soon"), kind=BROKER),
        replaced("settings", max_message_bytes="1000"),
        describe("settings", retention, "max.message.bytes"),
        replaced("settings", max_message_bytes="many"),
        replaced("settings", max_message_bytes=None),
        replaced("unknown", max_message_bytes="1"),
        replaced("settings"),
        describe("settings", retention, "max.message.bytes"),
        describe("unknown"),
        describe("../x"),
        describe(""),
        describe("7", kind=BROKER),
        describe("seven", kind=BROKER),
        describe("0", kind=1),
        describe("0", kind=99),
    ]


def settings_of_groups() -> list[ApiRequest]:
    def change(name: str, *configs: tuple[str, int, str | None], **fields: Any) -> ApiRequest:
        row = IncrementalAlterConfigsRequest.Resources
        rows = [row.Configs(name=key, config_operation=what, value=value) for key, what, value in configs]
        asked = row(resource_type=GROUP, resource_name=name, configs=rows)
        request = IncrementalAlterConfigsRequest(resources=[asked], **({"validate_only": False} | fields))
        return ApiRequest(f"change {configs} of {name!r}", ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)

    def replace(name: str, *configs: tuple[str, str]) -> ApiRequest:
        row = AlterConfigsRequest.Resources
        rows = [row.Configs(name=key, value=value) for key, value in configs]
        asked = row(resource_type=GROUP, resource_name=name, configs=rows)
        request = AlterConfigsRequest(resources=[asked], validate_only=False)
        return ApiRequest(f"replace by {configs} of {name}", ApiKey.ALTER_CONFIGS, 2, request)

    def describe(name: str, *keys: str) -> ApiRequest:
        asked = DescribeConfigsRequest.Resources(
            resource_type=GROUP, resource_name=name, configuration_keys=list(keys) or None
        )
        request = DescribeConfigsRequest(resources=[asked], include_synonyms=True)
        # Texts for people are our own.
        reported = frozenset({"documentation"})
        return ApiRequest(f"describe {name!r} {keys}", ApiKey.DESCRIBE_CONFIGS, 4, request, reported)

    def listed() -> ApiRequest:
        request = ListConfigResourcesRequest(resource_types=[GROUP])
        return ApiRequest("groups with settings", ApiKey.LIST_CONFIG_RESOURCES, 1, request)

    session, heartbeat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    pause = "consumer.assignment.interval.ms"
    return [
        describe("configured"),
        describe(""),
        listed(),
        change("configured", (session, SET, "50000"), validate_only=True),
        describe("configured", session),
        change("configured", (session, SET, "50000"), (pause, SET, "0")),
        describe("configured"),
        describe("configured", session, "no.such.setting"),
        listed(),
        *(change("configured", (session, SET, value)) for value in ("1", "70000", "0", "soon", "", None)),
        *(change("configured", (heartbeat, SET, value)) for value in ("4999", "15001", "-1")),
        *(change("configured", (pause, SET, value)) for value in ("-1", "15001")),
        change("configured", ("consumer.session.timeout", SET, "50000")),
        change("configured", ("consumer.session.timeout", DELETE, None)),
        change("configured", (heartbeat, DELETE, None)),
        change("configured", (heartbeat, APPEND, "6000")),
        change("configured", (heartbeat, SUBTRACT, "6000")),
        change("configured", (heartbeat, SET, "6000"), (heartbeat, SET, "7000")),
        change("", (session, SET, "50000")),
        change("a/b \u00fc", (session, SET, "50000")),
        describe("a/b \u00fc", session),
        describe("configured"),
        replace("configured", (heartbeat, "7000")),
        describe("configured"),
        replace("configured", (heartbeat, "1")),
        change("configured", (heartbeat, DELETE, None)),
        change("a/b \u00fc", (session, DELETE, None)),
        describe("configured"),
        listed(),
    ]


def cluster() -> list[ApiRequest]:
    asked = [
        ApiRequest("the cluster", ApiKey.DESCRIBE_CLUSTER, version, DescribeClusterRequest())
        for version in range(3)
    ]
    asked += [
        ApiRequest(
            "operations",
            ApiKey.DESCRIBE_CLUSTER,
            1,
            DescribeClusterRequest(include_cluster_authorized_operations=True),
        ),
        ApiRequest("no such endpoints", ApiKey.DESCRIBE_CLUSTER, 1, DescribeClusterRequest(endpoint_type=7)),
    ]
    return asked


def pieces() -> list[ApiRequest]:
    def ask(name: str, *topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> ApiRequest:
        rows = [DescribeTopicPartitionsRequest.Topics(name=one) for one in topics]
        request = DescribeTopicPartitionsRequest(topics=rows, response_partition_limit=limit)
        if cursor is not None:
            request.cursor = DescribeTopicPartitionsRequest.Cursor(
                topic_name=cursor[0], partition_index=cursor[1]
            )
        return ApiRequest(name, ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)

    return [
        create("make it", topic("pieces-a", 3), topic("pieces-b", 3)),
        ask("both", "pieces-a", "pieces-b"),
        ask("in the other order", "pieces-b", "pieces-a"),
        ask("four partitions", "pieces-a", "pieces-b", limit=4),
        ask("the rest", "pieces-a", "pieces-b", limit=4, cursor=("pieces-b", 1)),
        ask("three partitions", "pieces-a", "pieces-b", limit=3),
        ask("one", "pieces-a", limit=1),
        ask("an unknown one", "pieces-a", "unknown"),
        ask("an impossible one", "../x"),
        ask("from a topic that is not", "pieces-a", "pieces-b", cursor=("pieces-aa", 0)),
        ask("from a partition that is not", "pieces-a", cursor=("pieces-a", 7)),
    ]


def log_dirs() -> list[ApiRequest]:
    def ask(name: str, version: int, *topics: tuple[str, list[int]]) -> ApiRequest:
        rows = [DescribeLogDirsRequest.Topics(topic=one, partitions=numbers) for one, numbers in topics]
        return ApiRequest(name, ApiKey.DESCRIBE_LOG_DIRS, version, DescribeLogDirsRequest(topics=rows))

    return [
        create("make it", topic("log-dirs", 2)),
        *(ask("both", version, ("log-dirs", [0, 1])) for version in range(1, 6)),
        ask("one", 4, ("log-dirs", [1])),
        ask("one that is not", 4, ("log-dirs", [5])),
        ask("an unknown one", 4, ("unknown", [0])),
        ask("none", 4),
    ]


SCENARIOS: dict[str, Sequence[ApiRequest]] = {
    "api versions": api_versions(),
    "metadata": metadata(),
    "made by asking": made_by_asking(),
    "creation": creation(),
    "growth": growth(),
    "deletion": deletion(),
    "settings": settings(),
    "settings of groups": settings_of_groups(),
    "cluster": cluster(),
    "pieces": pieces(),
    "log dirs": log_dirs(),
}
