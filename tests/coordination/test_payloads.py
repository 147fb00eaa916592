"""The JSON of Kafka's znodes, against what Kafka 3.9.2 wrote (tests/data/znodes/make.py)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.ids import TopicPartition
from odradek.coordination import paths, payloads
from odradek.coordination.errors import DamagedPayload
from odradek.coordination.paths import ConfigEntity, EntityType
from odradek.coordination.payloads import (
    BrokerRegistration,
    ControllerRegistration,
    FinalizedFeatures,
    Listener,
    PartitionStateNode,
    ProducerIdBlock,
    Replicas,
    TopicAssignment,
)

SAMPLES = json.loads((Path(__file__).parents[1] / "data" / "znodes" / "znodes.json").read_text())


class Codec(NamedTuple):
    path: str
    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]


CODECS = {
    "broker": Codec(r"/brokers/ids/\d+", BrokerRegistration.decode, BrokerRegistration.encode),
    "controller": Codec("/controller", ControllerRegistration.decode, ControllerRegistration.encode),
    "epoch": Codec("/controller_epoch", payloads.decode_controller_epoch, payloads.encode_controller_epoch),
    "cluster id": Codec("/cluster/id", payloads.decode_cluster_id, payloads.encode_cluster_id),
    "topic": Codec("/brokers/topics/[^/]+", TopicAssignment.decode, TopicAssignment.encode),
    "state": Codec("/brokers/topics/.*/state", PartitionStateNode.decode, PartitionStateNode.encode),
    "config": Codec(
        "/config/(topics|brokers|users|clients|ips)/.*", payloads.decode_config, payloads.encode_config
    ),
    "change": Codec(
        r"/config/changes/config_change_\d{10}", payloads.decode_config_change, payloads.encode_config_change
    ),
    "reassignment": Codec(
        "/admin/reassign_partitions", payloads.decode_reassignment, payloads.encode_reassignment
    ),
    "partitions": Codec(
        r"/admin/preferred_replica_election|/isr_change_notification/isr_change_\d{10}",
        payloads.decode_partitions,
        payloads.encode_partitions,
    ),
    "log dir": Codec(
        r"/log_dir_event_notification/log_dir_event_\d{10}",
        payloads.decode_log_dir_event,
        payloads.encode_log_dir_event,
    ),
    "producer ids": Codec("/latest_producer_id_block", ProducerIdBlock.decode, ProducerIdBlock.encode),
    "features": Codec("/feature", FinalizedFeatures.decode, FinalizedFeatures.encode),
}


def codec_of(path: str) -> Codec:
    (codec,) = [codec for codec in CODECS.values() if re.fullmatch(codec.path, path)]
    return codec


@pytest.mark.parametrize(("path", "text"), SAMPLES)
def test_every_payload_of_kafka_comes_back_byte_for_byte(path: str, text: str) -> None:
    codec = codec_of(path)
    assert codec.encode(codec.decode(text.encode())) == text.encode()


def test_every_codec_has_a_sample_of_kafka() -> None:
    seen = {codec_of(path) for path, _ in SAMPLES}
    assert seen == set(CODECS.values())


def sample(path: str, holding: str = "") -> bytes:
    return next(text.encode() for name, text in SAMPLES if name == path and holding in text)


def test_a_broker_reports_its_listeners_and_rack() -> None:
    registration = BrokerRegistration.decode(sample("/brokers/ids/7"))

    assert registration.listeners == (
        Listener("CLIENT", "::1", 9093, "SASL_SSL"),
        Listener("SSL", "host.example", 9093, "SSL"),
    )
    assert registration.rack == "räck/1"
    assert registration.jmx_port == 9999
    assert registration.features == {"group.version": (0, 1)}


def test_an_old_broker_has_host_and_port_only() -> None:
    old = BrokerRegistration.decode(b'{"version":1,"host":"h","port":9092,"jmx_port":-1,"timestamp":"5"}')
    assert old == BrokerRegistration((Listener("PLAINTEXT", "h", 9092),), timestamp_ms=5)


def test_a_topic_reports_its_id_and_where_a_partition_moves() -> None:
    moving = TopicAssignment.decode(sample("/brokers/topics/moved", '"adding_replicas":{"0"'))

    assert isinstance(moving.topic_id, UUID)
    assert moving.partitions == {0: Replicas((2, 1), adding=(2,), removing=(1,)), 1: Replicas((2,))}


def test_a_state_reports_leader_epochs_and_recovery() -> None:
    state = PartitionStateNode.decode(sample("/brokers/topics/unclean/partitions/0/state"))
    assert state == PartitionStateNode(3, leader_epoch=8, isr=(3,), controller_epoch=4, is_recovering=True)


def test_we_register_as_controller_without_a_kraft_epoch() -> None:
    registered = ControllerRegistration(broker_id=0, timestamp_ms=17).encode()
    assert registered == b'{"version":1,"brokerid":0,"timestamp":"17"}'


def test_a_change_names_its_entity_whatever_its_name_holds() -> None:
    changes = [
        payloads.decode_config_change(text.encode())
        for path, text in SAMPLES
        if "_change_00" in path and "entity" in text
    ]
    assert ConfigEntity(EntityType.USERS, "ü /*") in changes
    assert paths.user_client_entity("anna", "app") in changes
    assert paths.broker_entity(None) in changes


def test_a_change_of_version_1_is_read_too() -> None:
    old = b'{"version":1,"entity_type":"topics","entity_name":"orders"}'
    assert payloads.decode_config_change(old) == paths.topic_entity("orders")


def test_features_of_version_1_are_read_too() -> None:
    old = b'{"version":1,"status":1,"features":{"f":{"min_version_level":1,"max_version_level":4}}}'
    assert FinalizedFeatures.decode(old) == FinalizedFeatures({"f": 4})


def test_a_reassignment_reports_where_to() -> None:
    moves = payloads.decode_reassignment(sample("/admin/reassign_partitions"))
    assert moves == {TopicPartition("orders", 0): (2, 1), TopicPartition("pay.ments-2", 1): (1,)}


DAMAGED = [b"\xff", b"{", b"[]", b"null", b"7.5", b'"x"', b"{}", b"[" * 100_000, b'{"partitions":7}']


@pytest.mark.parametrize("damaged", DAMAGED, ids=[repr(payload[:20]) for payload in DAMAGED])
@pytest.mark.parametrize("name", list(CODECS))
def test_a_damaged_payload_is_reported_as_such(name: str, damaged: bytes) -> None:
    with pytest.raises(DamagedPayload):
        CODECS[name].decode(damaged)


@pytest.mark.parametrize("name", [name for name in CODECS if name != "config"])
def test_an_empty_node_is_damaged(name: str) -> None:
    with pytest.raises(DamagedPayload):
        CODECS[name].decode(b"")


def test_an_empty_node_has_no_settings() -> None:
    assert payloads.decode_config(b"") == {}


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"controller_epoch":1,"leader":"one","version":1,"leader_epoch":0,"isr":[1]}',
        b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1.5]}',
        b'{"controller_epoch":1,"leader":true,"version":1,"leader_epoch":0,"isr":[]}',
        b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0}',
    ],
)
def test_a_state_with_a_wrong_field_is_damaged(damaged: bytes) -> None:
    with pytest.raises(DamagedPayload, match="partition state"):
        PartitionStateNode.decode(damaged)


@pytest.mark.parametrize(
    "damaged",
    [b'{"partitions":{"x":[1]}}', b'{"partitions":{"0":1}}', b'{"partitions":{},"topic_id":"short"}'],
)
def test_a_topic_with_a_wrong_field_is_damaged(damaged: bytes) -> None:
    with pytest.raises(DamagedPayload, match="topic"):
        TopicAssignment.decode(damaged)


@given(
    payload=st.binary(max_size=40) | st.sampled_from([text for _, text in SAMPLES]).map(str.encode),
    cut=st.integers(0, 400),
)
def test_any_bytes_are_read_or_reported_as_damaged(payload: bytes, cut: int) -> None:
    for codec in CODECS.values():
        try:
            codec.decode(payload[:cut])
        except DamagedPayload:
            continue


ids = st.integers(-1, 2**31 - 1)
replicas = st.lists(ids, max_size=4).map(tuple)


@given(
    partitions=st.dictionaries(st.integers(0, 10_000), st.builds(Replicas, replicas, replicas, replicas)),
    topic_id=st.none() | st.uuids(),
)
def test_any_assignment_comes_back(partitions: dict[int, Replicas], topic_id: UUID | None) -> None:
    assignment = TopicAssignment(partitions, topic_id)
    assert TopicAssignment.decode(assignment.encode()) == assignment


@given(
    name=st.text(min_size=1).filter(lambda name: name.isprintable()), client=st.none() | st.text(min_size=1)
)
def test_any_user_and_client_come_back_and_stay_one_name(name: str, client: str | None) -> None:
    entity = paths.user_client_entity(name, client)
    assert entity.entity_path.count("/") == 3
    assert paths.parse_entity_path(entity.entity_path) == entity
