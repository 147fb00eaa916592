"""The compiled walker counts references by hand in places; here memory must come back, also after errors."""

from __future__ import annotations

import contextlib
import gc
import tracemalloc
from collections.abc import Callable

import pytest

from odradek.protocol.errors import DecodeError, EncodeError
from odradek.protocol.messages import (
    ConsumerGroupMemberMetadataValue,
    FetchResponse,
    MetadataResponse,
    ProduceRequest,
)

pytestmark = pytest.mark.slow  # each of them takes a second or more

ROUNDS = 60


def growth(call: Callable[[], object]) -> int:
    """How much memory more is held after many calls than after a few."""
    for _ in range(50):
        call()
    gc.collect()
    tracemalloc.start()
    for _ in range(20):
        call()
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(ROUNDS):
        call()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return after - before


def a_fetch_response() -> FetchResponse:
    partition = FetchResponse.Responses.Partitions(
        records=b"records", diverging_epoch=FetchResponse.Responses.Partitions.DivergingEpoch(epoch=5)
    )
    return FetchResponse(responses=[FetchResponse.Responses(topic="orders", partitions=[partition] * 3)])


def a_metadata_value() -> ConsumerGroupMemberMetadataValue:
    made = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(session_timeout_ms=5)
    return ConsumerGroupMemberMetadataValue(instance_id="i", classic_member_metadata=made)


@pytest.mark.parametrize(
    ("message", "version"), [(a_fetch_response(), 12), (a_fetch_response(), 4), (a_metadata_value(), 0)]
)
def test_round_trips_leave_nothing_behind(walk, message, version):
    wire = walk.encode(message, version)

    def round_trip() -> None:
        walk.encode(walk.decode(type(message), wire, version)[0], version)
        walk.encode_frame(message, version, message, version)

    assert growth(round_trip) < 20 * ROUNDS


def test_refused_bytes_leave_nothing_behind(walk):
    wire = walk.encode(a_fetch_response(), 12)

    def refuse_every_cut() -> None:
        for end in range(len(wire)):
            with contextlib.suppress(DecodeError):
                walk.decode(FetchResponse, wire[:end], 12)

    assert growth(refuse_every_cut) < 20 * ROUNDS


def test_refused_values_leave_nothing_behind(walk):
    broken = a_fetch_response()
    broken.responses[0].partitions[2].high_watermark = "x" * 100
    tagged = a_metadata_value()
    tagged.classic_member_metadata.session_timeout_ms = 2**40

    def refuse() -> None:
        for message, version in ((broken, 12), (tagged, 0)):
            with pytest.raises(EncodeError):
                walk.encode(message, version)

    assert growth(refuse) < 20 * ROUNDS


def test_a_decoded_message_costs_the_cyclic_collector_nothing():
    decoded, _ = MetadataResponse.decode(
        MetadataResponse(topics=[MetadataResponse.Topics(name="t")]).encode(12), 12
    )
    assert not any(map(gc.is_tracked, (decoded, decoded.topics, decoded.topics[0], decoded.brokers)))
    assert gc.is_tracked(ProduceRequest())
