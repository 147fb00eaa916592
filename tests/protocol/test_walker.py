"""Both walkers against bytes worked out by hand from the schema README."""

from __future__ import annotations

import pytest

from odradek.protocol.errors import DecodeError, EncodeError
from odradek.protocol.limits import DecodeLimits
from odradek.protocol.messages import (
    ApiVersionsRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupMemberMetadataValue,
    DescribeClientQuotasResponse,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    ProduceRequest,
    ProduceResponse,
    RequestHeader,
    ResponseHeader,
    StreamsGroupMemberMetadataValue,
)

TopicData = ProduceRequest.TopicData
PartitionData = TopicData.PartitionData


def a_produce_request(records: bytes | None = b"records") -> ProduceRequest:
    return ProduceRequest(
        acks=-1,
        timeout_ms=1500,
        topic_data=[TopicData(name="orders", partition_data=[PartitionData(index=3, records=records)])],
    )


OLD_PRODUCE = (
    b"\xff\xff"  # no transactional id
    b"\xff\xff\x00\x00\x05\xdc"  # acks, timeout
    b"\x00\x00\x00\x01\x00\x06orders"
    b"\x00\x00\x00\x01\x00\x00\x00\x03\x00\x00\x00\x07records"
)
FLEXIBLE_PRODUCE = (
    b"\x00"
    b"\xff\xff\x00\x00\x05\xdc"
    b"\x02\x07orders"
    b"\x02\x00\x00\x00\x03\x08records"
    b"\x00\x00\x00"  # no tagged fields, in partition, topic and request
)


@pytest.mark.parametrize(("version", "wire"), [(3, OLD_PRODUCE), (9, FLEXIBLE_PRODUCE)])
def test_a_request_has_the_bytes_of_the_schema(walk, version, wire):
    assert walk.encode(a_produce_request(), version) == wire
    assert walk.decode(ProduceRequest, wire, version) == (a_produce_request(), len(wire))


def test_records_are_views_of_the_frame(walk):
    frame = bytearray(FLEXIBLE_PRODUCE)
    message, _ = walk.decode(ProduceRequest, frame, 9)
    records = message.topic_data[0].partition_data[0].records

    frame[frame.index(b"records")] = ord("R")

    assert isinstance(records, memoryview)
    assert bytes(records) == b"Records"


def test_strings_and_bytes_are_copies(walk):
    frame = bytearray(OLD_PRODUCE)
    message, _ = walk.decode(ProduceRequest, frame, 3)
    frame[:] = bytes(len(frame))
    assert message.topic_data[0].name == "orders"


def test_a_message_may_begin_anywhere_in_its_buffer(walk):
    assert walk.decode(ProduceRequest, b"before" + OLD_PRODUCE + b"after", 3, start=6) == (
        a_produce_request(),
        6 + len(OLD_PRODUCE),
    )


def test_null_is_written_as_each_form_of_length_has_it(walk):
    for version, wire in ((3, b"\x00\x00\x00\x03\xff\xff\xff\xff"), (9, b"\x00\x00\x00\x03\x00")):
        encoded = walk.encode(a_produce_request(records=None), version)
        assert wire in encoded
        message, _ = walk.decode(ProduceRequest, encoded, version)
        assert message.topic_data[0].partition_data[0].records is None


def test_a_null_array_is_not_an_empty_one(walk):
    everything, nothing = MetadataRequest(topics=None), MetadataRequest(topics=[])
    assert walk.encode(everything, 1) == b"\xff\xff\xff\xff"
    assert walk.encode(nothing, 1) == b"\x00\x00\x00\x00"
    assert walk.decode(MetadataRequest, b"\xff\xff\xff\xff", 1)[0].topics is None
    assert walk.decode(MetadataRequest, b"\x00\x00\x00\x00", 1)[0].topics == []


def test_a_nullable_struct_has_a_presence_byte(walk):
    absent = ConsumerGroupHeartbeatResponse(member_id="m", assignment=None)
    present = ConsumerGroupHeartbeatResponse(
        member_id="m", assignment=ConsumerGroupHeartbeatResponse.Assignment(topic_partitions=[])
    )
    assert walk.encode(absent, 0).endswith(b"\xff\x00")
    assert walk.encode(present, 0).endswith(b"\x01\x01\x00\x00")
    for message in (absent, present):
        assert walk.decode(ConsumerGroupHeartbeatResponse, walk.encode(message, 0), 0)[0] == message


def test_a_nullable_tagged_struct_is_absent_present_or_null(walk):
    default = ConsumerGroupMemberMetadataValue()
    null = ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    made = ConsumerGroupMemberMetadataValue.ClassicMemberMetadata(session_timeout_ms=5)
    present = ConsumerGroupMemberMetadataValue(classic_member_metadata=made)
    assert walk.encode(default, 0).endswith(b"\x00")
    assert walk.encode(null, 0).endswith(b"\x01\x00\x01\x00")
    assert walk.encode(present, 0).endswith(b"\x01\x00\x07\x01\x00\x00\x00\x05\x01\x00")
    for message in (default, null, present):
        assert walk.decode(type(message), walk.encode(message, 0), 0)[0] == message


def test_a_tagged_field_is_written_only_when_it_says_something(walk):
    plain = FetchRequest(max_wait_ms=500)
    tagged = FetchRequest(max_wait_ms=500, cluster_id="c" * 200)
    assert walk.encode(plain, 12).endswith(b"\x00")
    assert walk.encode(tagged, 12).endswith(b"\x01\x00\xca\x01" + b"\xc9\x01" + b"c" * 200)
    assert walk.decode(FetchRequest, walk.encode(tagged, 12), 12)[0] == tagged


def test_unknown_tags_are_skipped(walk):
    known = walk.encode(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3)
    wire = known[:-1] + b"\x02\x05\x02ab\x07\x00"
    assert walk.decode(ApiVersionsRequest, wire, 3) == (
        ApiVersionsRequest(client_software_name="x", client_software_version="1"),
        len(wire),
    )


def test_a_field_that_the_version_lacks_takes_its_default(walk):
    old = walk.encode(FetchResponse(responses=[FetchResponse.Responses(topic="t")]), 4)
    message, _ = walk.decode(FetchResponse, old, 4)
    assert message.session_id == 0
    assert message.node_endpoints == []
    assert message == FetchResponse(responses=[FetchResponse.Responses(topic="t")])


def test_a_default_list_is_new_for_each_message(walk):
    wire = walk.encode(FetchResponse(), 4)
    first, _ = walk.decode(FetchResponse, wire, 4)
    second, _ = walk.decode(FetchResponse, wire, 4)
    first.node_endpoints.append("mine")
    assert second.node_endpoints == []


def test_a_client_gets_an_error_if_the_version_cannot_express_its_request(walk):
    request = FetchRequest(rack_id="a")
    with pytest.raises(EncodeError, match=r"RackId: this version has no such field"):
        walk.encode(request, 10)
    assert walk.encode(request, 11).endswith(b"\x00\x01a")


def test_an_answer_drops_what_an_old_client_cannot_read(walk):
    Partition = ProduceResponse.Responses.PartitionResponses  # noqa: N806
    answer = ProduceResponse(
        responses=[
            ProduceResponse.Responses(
                name="t", partition_responses=[Partition(index=1, error_message="too late")]
            )
        ]
    )
    message, _ = walk.decode(ProduceResponse, walk.encode(answer, 7), 7)
    assert message.responses[0].partition_responses[0].error_message is None


def test_a_frame_keeps_records_apart_and_counts_them(walk):
    class FileRange:
        def __len__(self) -> int:
            return 1000

    records = FileRange()
    parts = walk.encode_frame(RequestHeader(client_id="c"), 1, a_produce_request(records), 3)
    assert parts[1] is records
    assert int.from_bytes(parts[0][:4], "big") == sum(map(len, parts)) - 4
    assert parts[0].endswith(b"\x00\x00\x00\x03\x00\x00\x03\xe8")
    empty = walk.encode_frame(ResponseHeader(correlation_id=7), 0, FetchResponse(), 4)
    assert empty == [b"\0\0\0\x0c\0\0\0\x07" + bytes(8)]


def test_numbers_keep_their_extremes(walk):
    Entry = DescribeClientQuotasResponse.Entries  # noqa: N806
    values = [Entry.Values(key="k", value=number) for number in (0.0, -1.5, 1e308, float("inf"))]
    message = DescribeClientQuotasResponse(throttle_time_ms=-(2**31), entries=[Entry(values=values)])
    for version in (0, 1):
        assert walk.decode(type(message), walk.encode(message, version), version)[0] == message
    endpoint = StreamsGroupMemberMetadataValue.UserEndpoint(host="h", port=65535)
    value = StreamsGroupMemberMetadataValue(user_endpoint=endpoint)
    assert walk.decode(type(value), walk.encode(value, 0), 0)[0] == value


BAD_BYTES = [
    ("nothing at all", 9, b"", "TransactionalId at byte 0: needs 1 bytes, 0 left"),
    ("cut in a number", 9, FLEXIBLE_PRODUCE[:2], "Acks at byte 1: needs 2 bytes, 1 left"),
    (
        "cut in the records",
        9,
        FLEXIBLE_PRODUCE[:-5],
        r"TopicData\[0\].PartitionData\[0\].Records at byte 21: needs 7 bytes, 5 left",
    ),
    (
        "a count that lies",
        9,
        FLEXIBLE_PRODUCE[:7] + b"\xff\xff\xff\xff\x0f",
        "TopicData at byte 7: 4294967294 elements cannot fit into 0 bytes",
    ),
    (
        "an old count that lies",
        3,
        OLD_PRODUCE[:8] + b"\x7f\xff\xff\xff" + bytes(100),
        "TopicData at byte 8: 2147483647 elements cannot fit into 100 bytes",
    ),
    (
        "a negative length",
        3,
        OLD_PRODUCE[:8] + b"\xff\xff\xff\xfe",
        "TopicData at byte 8: a length of -2",
    ),
    ("a null array", 3, OLD_PRODUCE[:8] + b"\xff" * 4, "TopicData at byte 8: null where null is not allowed"),
    (
        "a null string",
        3,
        OLD_PRODUCE[:12] + b"\xff\xff" + bytes(20),
        r"TopicData\[0\].Name at byte 12: null where null is not allowed",
    ),
    (
        "a varint without end",
        9,
        FLEXIBLE_PRODUCE[:7] + b"\xff" * 9,
        "TopicData at byte 7: a varint of more than 32 bits",
    ),
    (
        "a varint of 33 bits",
        9,
        FLEXIBLE_PRODUCE[:7] + b"\xff\xff\xff\xff\x1f",
        "TopicData at byte 7: a varint of more than 32 bits",
    ),
    (
        "a string that is no text",
        3,
        OLD_PRODUCE.replace(b"orders", b"ord\xffrs"),
        r"TopicData\[0\].Name at byte 17: not UTF-8",
    ),
    (
        "a string too long for the protocol",
        9,
        b"\x81\x80\x02" + bytes(40000),
        "TransactionalId at byte 0: a string of 32768 bytes",
    ),
    (
        "tags out of order",
        9,
        FLEXIBLE_PRODUCE[:-1] + b"\x02\x05\x00\x05\x00",
        "message at byte 33: tag 5 comes after tag 5",
    ),
    (
        "a tag that ends too late",
        9,
        FLEXIBLE_PRODUCE[:-1] + b"\x01\x05\x09abc",
        "message at byte 33: needs 9 bytes, 3 left",
    ),
]


@pytest.mark.parametrize(
    ("version", "wire", "message"), [row[1:] for row in BAD_BYTES], ids=[row[0] for row in BAD_BYTES]
)
def test_bad_bytes_are_refused_with_what_and_where(walk, version, wire, message):
    with pytest.raises(DecodeError, match=f"^{message}$"):
        walk.decode(ProduceRequest, wire, version)


def test_every_truncation_is_refused(walk):
    for end in range(len(FLEXIBLE_PRODUCE)):
        with pytest.raises(DecodeError):
            walk.decode(ProduceRequest, FLEXIBLE_PRODUCE[:end], 9)


def test_a_known_tag_whose_size_lies_is_refused(walk):
    wire = walk.encode(FetchRequest(cluster_id="abc"), 12)
    assert wire.endswith(b"\x01\x00\x04\x04abc")
    with pytest.raises(DecodeError, match=r"ClusterId at byte .*: takes 4 bytes, said 5"):
        walk.decode(FetchRequest, wire.replace(b"\x01\x00\x04\x04abc", b"\x01\x00\x05\x04abcd"), 12)


def test_unknown_tags_by_the_million_are_refused_early(walk):
    tags = b"".join(
        bytes([tag & 0x7F | 0x80, tag >> 7 & 0x7F | 0x80, tag >> 14, 0]) for tag in range(100, 1_000_100, 50)
    )
    count = len(tags) // 4
    wire = FLEXIBLE_PRODUCE[:-1] + bytes([count & 0x7F | 0x80, count >> 7 & 0x7F | 0x80, count >> 14]) + tags
    with pytest.raises(DecodeError, match="too many unknown tagged fields"):
        walk.decode(ProduceRequest, wire, 9, limits=DecodeLimits(1_000, 10))


def test_the_element_budget_counts_nested_arrays(walk):
    topic = FetchRequest.ForgottenTopicsData(topic="t", partitions=list(range(10)))
    wire = walk.encode(FetchRequest(forgotten_topics_data=[topic] * 10, session_epoch=1), 7)
    assert walk.decode(FetchRequest, wire, 7, limits=DecodeLimits(110, 0))[0].session_epoch == 1
    with pytest.raises(DecodeError, match="too many array elements"):
        walk.decode(FetchRequest, wire, 7, limits=DecodeLimits(109, 0))


def test_a_start_outside_the_buffer_is_refused(walk):
    for start in (-1, 5):
        with pytest.raises(DecodeError, match="no such byte"):
            walk.decode(ProduceRequest, b"abcd", 3, start=start)


BAD_VALUES = [
    (ProduceRequest(acks=40000), r"^Acks: 40000 does not fit int16"),
    (ProduceRequest(acks="all"), r"^Acks: needs an int, not str"),
    (ProduceRequest(acks=10**30), r"does not fit int16"),
    (ProduceRequest(acks=1.5), r"^Acks: needs an int, not float"),
    (ProduceRequest(acks=None), r"^Acks: null where null is not allowed"),
    (ProduceRequest(topic_data=None), r"^TopicData: null where null is not allowed"),
    (ProduceRequest(topic_data="abc"), r"^TopicData: needs a list, not str"),
    (ProduceRequest(topic_data=[None]), r"^TopicData\[0\]: null where null is not allowed"),
    (ProduceRequest(topic_data=[3]), r"^TopicData\[0\]: needs a ProduceRequest.TopicData, not int"),
    (ProduceRequest(topic_data=[TopicData(name=b"x")]), r"^TopicData\[0\].Name: needs a str, not bytes"),
    (ProduceRequest(topic_data=[TopicData(name="\ud800")]), r"Name: has half a surrogate pair"),
    (ProduceRequest(topic_data=[TopicData(name="n" * 32768)]), r"Name: a string of 32768 bytes is too long"),
    (a_produce_request(records="text"), r"Records: needs bytes, not str"),
    (ProduceRequest(topic_data=[TopicData(topic_id=b"\1" * 16)]), r"TopicId: this version has no such field"),
]


@pytest.mark.parametrize(("message", "problem"), BAD_VALUES, ids=[row[1] for row in BAD_VALUES])
def test_a_value_that_does_not_fit_its_field_is_refused(walk, message, problem):
    with pytest.raises(EncodeError, match=problem):
        walk.encode(message, 9)


def test_a_uuid_is_sixteen_bytes(walk):
    request = ProduceRequest(topic_data=[TopicData(topic_id=b"short")])
    with pytest.raises(EncodeError, match="needs 16 bytes"):
        walk.encode(request, 13)


def test_a_message_with_a_field_left_out_is_refused(walk):
    request = ProduceRequest()
    del request.acks
    with pytest.raises(EncodeError, match="Acks has no value"):
        walk.encode(request, 9)


def test_a_message_of_another_class_is_refused(walk):
    plan = walk.plan(ProduceRequest, 9)
    with pytest.raises(EncodeError, match="needs a ProduceRequest, not FetchRequest"):
        walk.module.encode(plan, FetchRequest())


def test_a_subclass_is_written_like_its_parent(walk):
    class Mine(ConsumerGroupHeartbeatRequest):
        extra = 1

    made = Mine(group_id="g", member_id="m", member_epoch=0)
    plain = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0)
    plan = walk.plan(ConsumerGroupHeartbeatRequest, 0)
    assert walk.module.encode(plan, made) == walk.module.encode(plan, plain)
