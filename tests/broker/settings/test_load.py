"""A start with a file and `--set`: later wins; a mistake says what is wrong, what would do, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.settings.load import Given, load
from odradek.common.errors import ConfigError


@pytest.fixture
def server_properties(tmp_path: Path) -> Path:
    return tmp_path / "server.properties"


def refusal(path: Path, text: str, *overrides: str) -> str:
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load(str(path), overrides)
    return str(refused.value).replace(str(path), path.name)


def test_nothing_given_is_a_broker_on_this_machine_alone() -> None:
    loaded = load()

    assert [str(endpoint) for endpoint in loaded.config.endpoints] == ["PLAINTEXT://127.0.0.1:9092"]
    assert loaded.config.given_broker_id == 0
    assert loaded.warnings == ()


def test_a_file_beats_defaults_and_an_override_beats_the_file(server_properties: Path) -> None:
    server_properties.write_text("num.partitions=3\nnum.io.threads = 4\n")

    config = load(
        str(server_properties),
        ["num.partitions=5"],
        defaults=[("num.io.threads", "2"), ("log.dirs", "./odradek-data")],
    ).config

    assert (config.num_partitions, config.num_io_threads) == (5, 4)
    assert config.data_dirs == ("./odradek-data",)


def test_a_misspelt_name_is_refused_with_the_nearest_one(server_properties: Path) -> None:
    reported = refusal(server_properties, "broker.id=1\nlog.retension.ms=5\n")

    assert reported == (
        "unknown setting log.retension.ms; did you mean log.retention.ms? (server.properties, line 2)"
    )


@pytest.mark.parametrize(
    ("line", "reported"),
    [
        (
            "num.partitions=many",
            "Invalid value many for configuration num.partitions: Not a number of type INT",
        ),
        (
            "num.partitions=0",
            "Invalid value 0 for configuration num.partitions: Value must be at least 1",
        ),
        (
            "num.partitions=1_000",
            "Invalid value 1_000 for configuration num.partitions: Not a number of type INT",
        ),
        (
            "auto.create.topics.enable=yes",
            "Invalid value yes for configuration auto.create.topics.enable: "
            "Expected value to be either true or false",
        ),
        (
            "log.cleanup.policy=delete,shred",
            "Invalid value shred for configuration log.cleanup.policy: "
            "String must be one of: compact, delete",
        ),
        (
            "odradek.coordination=redis://here",
            "Invalid value redis://here for configuration odradek.coordination: "
            "Value must be sqlite:PATH or zookeeper://host:port,host:port/chroot",
        ),
        (
            "remote.log.storage.system.enable=true",
            "remote.log.storage.system.enable is not offered: there is no tiered storage",
        ),
        (
            "listener.name.plaintext.log.dirs=/x",
            "log.dirs cannot be set for one listener, as listener.name.plaintext.log.dirs does",
        ),
        ("retention.ms=5", "retention.ms is a setting of topics, not of brokers"),
        (
            "replica.alter.log.dirs.io.max.bytes.per.second=5",
            "replica.alter.log.dirs.io.max.bytes.per.second can only be set at run time, "
            "by `odradek configs`",
        ),
        (
            "listener.name.client.ssl.keystore.location=/key.pem",
            "listener.name.client.ssl.keystore.location is not offered: TLS is not offered yet: "
            "leave ssl.* out and keep listeners PLAINTEXT, on a network that you trust",
        ),
        (
            "sasl.enabled.mechanisms=PLAIN",
            "sasl.enabled.mechanisms is not offered: SASL is not offered yet: "
            "leave it out and keep listeners PLAINTEXT, on a network that you trust",
        ),
        (
            "odradek.durable=true",
            "odradek.durable is not offered: acks=all does not wait for an fsync on every replica yet; "
            "log.flush.interval.messages=1 syncs each append before its answer",
        ),
        (
            "replica.lag.time.max.ms=soon",
            "Invalid value soon for configuration replica.lag.time.max.ms: Not a number of type LONG",
        ),
    ],
)
def test_a_mistake_names_key_value_remedy_and_line(server_properties: Path, line: str, reported: str) -> None:
    assert refusal(server_properties, f"# one\n{line}\n") == f"{reported} (server.properties, line 2)"


def test_every_mistake_is_reported_at_once(server_properties: Path) -> None:
    reported = refusal(server_properties, "num.partitions=0\n", "nonsense=1", "num.io.threads=0")

    assert reported.splitlines() == [
        "Invalid value 0 for configuration num.partitions: Value must be at least 1 "
        "(server.properties, line 1)",
        "unknown setting nonsense (--set)",
        "Invalid value 0 for configuration num.io.threads: Value must be at least 1 (--set)",
    ]


def test_a_contradiction_names_the_lines_of_both_sides(server_properties: Path) -> None:
    reported = refusal(server_properties, "queued.max.request.bytes=100\n\nsocket.request.max.bytes=200\n")

    assert reported == (
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes "
        "(queued.max.request.bytes: server.properties, line 1; "
        "socket.request.max.bytes: server.properties, line 3)"
    )


def test_an_override_without_a_value_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--set num\.partitions: must be key=value"):
        load(None, ["num.partitions"])


def test_a_password_is_not_reported_when_it_is_refused(server_properties: Path) -> None:
    reported = refusal(server_properties, "ssl.keystore.pasword=hunter2\npassword.encoder.secret=hunter2\n")

    assert "hunter2" not in reported
    assert "did you mean ssl.keystore.password?" in reported


def test_one_warning_names_all_that_has_no_effect(server_properties: Path) -> None:
    server_properties.write_text(
        "num.network.threads=8\nremote.log.storage.system.enable=false\nreplication.quota.window.num=5\n"
    )

    assert load(str(server_properties)).warnings == (
        "these settings have no effect (see docs/configuration.md): "
        "num.network.threads, replication.quota.window.num",
    )


def test_a_key_that_is_set_twice_in_a_file_is_warned_about(server_properties: Path) -> None:
    server_properties.write_text("num.partitions=2\nnum.partitions=3\n")

    loaded = load(str(server_properties), ["num.partitions=4"])

    assert loaded.config.num_partitions == 4
    assert [text.replace(str(server_properties), "file") for text in loaded.warnings] == [
        "num.partitions is set twice (file, line 1; file, line 2): the last one counts"
    ]


KAFKA_3_9 = """
broker.id=0
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kafka-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.retention.check.interval.ms=300000
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
"""
KAFKA_4_3 = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


@pytest.mark.parametrize(
    ("text", "overrides", "endpoint"),
    [
        (KAFKA_3_9, [], "PLAINTEXT://127.0.0.1:9092"),
        (KAFKA_4_3, ["odradek.allow.unauthenticated=true"], "PLAINTEXT://:9092"),
    ],
)
def test_a_file_of_kafkas_starts_a_broker_with_one_warning(
    server_properties: Path, text: str, overrides: list[str], endpoint: str
) -> None:
    server_properties.write_text(text)

    loaded = load(str(server_properties), overrides)

    assert [str(one) for one in loaded.config.endpoints] == [endpoint]
    assert len(loaded.warnings) == 1
    assert "num.network.threads" in loaded.warnings[0]


def test_kafkas_listener_for_every_machine_is_refused_with_the_remedy(server_properties: Path) -> None:
    reported = refusal(server_properties, KAFKA_4_3)

    assert "set odradek.allow.unauthenticated=true (listeners: server.properties, line 5)" in reported


@pytest.mark.parametrize(
    ("lines", "number"),
    [(["node.id=7"], 7), (["broker.id=7"], 7), (["broker.id=7", "node.id=7"], 7), ([], 0)],
)
def test_a_broker_has_one_number_by_either_name(lines: list[str], number: int) -> None:
    config = load(None, lines).config

    assert config.given_broker_id == number


def test_two_numbers_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"node.id=1 and broker.id=2 must be the same"):
        load(None, ["node.id=1", "broker.id=2"])


def test_zookeeper_gives_a_number_to_a_broker_without_one() -> None:
    config = load(None, ["odradek.coordination=zookeeper://here:2181"]).config

    assert config.given_broker_id is None
    with pytest.raises(ConfigError, match=r"broker.id=1001: must not exceed reserved.broker.max.id=1000"):
        load(None, ["odradek.coordination=zookeeper://here:2181", "broker.id=1001"])
    with pytest.raises(ConfigError, match="set one"):
        load(None, ["odradek.coordination=zookeeper://here:2181", "zookeeper.connect=here:2181"])


@pytest.mark.parametrize(
    ("overrides", "url"),
    [
        (["log.dirs=/data/a,/data/b"], "sqlite:/data/a/coordination.db"),
        (["zookeeper.connect=a:1,b:2/chroot"], "zookeeper://a:1,b:2/chroot"),
        (["odradek.coordination=sqlite:/data/store"], "sqlite:/data/store"),
    ],
)
def test_the_shared_store_is_where_somebody_said_or_beside_the_logs(overrides: list[str], url: str) -> None:
    assert load(None, overrides).config.coordination_url == url


def test_an_option_of_the_command_line_is_named_where_its_value_is_wrong() -> None:
    with pytest.raises(ConfigError) as refused:
        load(options=[Given("listeners", "nonsense", "--listener")])
    assert str(refused.value).endswith("(listeners: --listener)")


def test_an_option_beats_the_file_and_is_beaten_by_set_with_a_warning(server_properties: Path) -> None:
    server_properties.write_text("broker.id=1\n")
    option = Given("broker.id", "2", "--broker-id")

    assert load(str(server_properties), options=[option]).config.given_broker_id == 2
    loaded = load(str(server_properties), ["broker.id=3"], options=[option])

    assert loaded.config.given_broker_id == 3
    assert loaded.warnings == ("broker.id is set twice (--broker-id; --set): the last one counts",)


def test_an_entry_that_a_list_has_twice_counts_once_with_a_warning() -> None:
    loaded = load(None, ["log.dirs=/a,/b, /a"])

    assert loaded.config.data_dirs == ("/a", "/b")
    assert loaded.warnings == ("log.dirs names /a twice: it counts once (--set)",)


def test_a_file_that_is_no_text_does_not_reach_the_terminal_as_it_is(server_properties: Path) -> None:
    reported = refusal(server_properties, "\x1b[2Jnum=1\n")

    assert reported == "unknown setting '\\x1b[2Jnum' (server.properties, line 1)"
