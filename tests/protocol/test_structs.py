from __future__ import annotations

import pytest

from odradek.protocol import messages
from odradek.protocol.errors import UnsupportedVersion
from odradek.protocol.messages import FetchRequest, FetchResponse, MetadataRequest
from odradek.protocol.schema import load_all


def test_a_message_starts_with_the_defaults_of_its_schema():
    request = FetchRequest()
    assert (request.max_bytes, request.rack_id, request.topics) == (2147483647, "", [])
    assert request.replica_state == FetchRequest.ReplicaState(replica_id=-1, replica_epoch=-1)
    assert request.cluster_id is None


def test_mutable_defaults_are_not_shared():
    first, second = FetchRequest(), FetchRequest()
    first.topics.append(FetchRequest.Topics())
    first.replica_state.replica_id = 5
    assert second == FetchRequest()


def test_messages_compare_by_value():
    assert FetchRequest(min_bytes=1) == FetchRequest(min_bytes=1)
    assert FetchRequest(min_bytes=1) != FetchRequest(min_bytes=2)
    assert FetchRequest() != MetadataRequest()
    with pytest.raises(TypeError, match="unhashable"):
        hash(FetchRequest())


def test_a_misspelt_field_is_refused():
    with pytest.raises(TypeError, match="min_byte"):
        FetchRequest(min_byte=1)
    with pytest.raises(AttributeError):
        FetchRequest().min_byte = 1


def test_a_message_shows_its_content():
    text = repr(FetchResponse.Responses(topic="orders"))
    assert text.startswith("FetchResponse.Responses(topic='orders', topic_id=b")


def test_a_version_that_does_not_exist_is_refused_by_name():
    for version in (-1, 19):
        with pytest.raises(UnsupportedVersion, match=f"FetchRequest has versions 0-18, not {version}"):
            FetchRequest().encode(version)
        with pytest.raises(UnsupportedVersion):
            FetchRequest.decode(b"", version)


def test_the_module_knows_every_message_and_nothing_else():
    assert dir(messages) == sorted(load_all())
    assert messages.OffsetCommitKey.SPEC.key == 1
    with pytest.raises(AttributeError, match="there is no message named FetchAnswer"):
        messages.FetchAnswer  # noqa: B018
