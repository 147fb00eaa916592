"""Questions about records: Produce, Fetch, ListOffsets, DeleteRecords and what lies around them.

Each scenario is asked in order, on topics that nobody else has. Batches are the same bytes for both brokers.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence

from broker.wire import a_batch, a_fetch, a_produce, a_topic
from compat.compared_requests import ApiRequest
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DescribeProducersRequest,
    FetchRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
)
from odradek.records.batch import renew_crc
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.record import Record

NOW_MS = time.time_ns() // 1_000_000
HOUR_MS = 3_600_000
CODECS = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
Changed = dict[int, bytes]

CREATED = frozenset({"configs"})
"""CreateTopics also returns settings; those are compared by the requests about settings."""


def create(request: CreateTopicsRequest, version: int = 5) -> ApiRequest:
    return ApiRequest(f"create {request.topics[0].name}", ApiKey.CREATE_TOPICS, version, request, CREATED)


def produce(name: str, body: ProduceRequest, version: int = 9) -> ApiRequest:
    return ApiRequest(name, ApiKey.PRODUCE, version, body)


def refuse(name: str, body: ProduceRequest, version: int = 9) -> ApiRequest:
    """A produce that fails. We always give a reason; Kafka rarely does, but often its log start offset."""
    return produce(name, body, version)._replace(apart=frozenset({"error_message", "log_start_offset"}))


def fetch(name: str, body: FetchRequest, version: int = 12) -> ApiRequest:
    # Session ids are random.
    return ApiRequest(name, ApiKey.FETCH, version, body, frozenset({"session_id"}))


def changed(batch: bytes, places: Changed, *, with_crc: bool = True) -> bytes:
    """A batch with other bytes at some places; its CRC is right again unless told otherwise."""
    buffer = bytearray(batch)
    for position, piece in places.items():
        buffer[position : position + len(piece)] = piece
    if with_crc:
        renew_crc(buffer, 0, len(buffer))
    return bytes(buffer)


def batch_at(timestamp_ms: int, *values: bytes, **fields: object) -> bytes:
    return a_batch(*(values or (b"value",)), timestamp_ms=timestamp_ms, **fields)


PLAIN = batch_at(NOW_MS, b"a", b"b", b"c")
OTHER_BATCHES: dict[str, bytes] = {
    "nothing": b"",
    "garbage": b"garbage" * 20,
    "half a batch": PLAIN[:-1],
    "two batches": PLAIN + PLAIN,
    "only a header": PLAIN[:61],
    "a wrong crc": changed(PLAIN, {61: b"\x7f"}, with_crc=False),
    "magic 0": changed(PLAIN, {16: b"\0"}),
    "magic 1": changed(PLAIN, {16: b"\1"}),
    "magic 3": changed(PLAIN, {16: b"\3"}),
    "a length of -1": changed(PLAIN, {8: b"\xff\xff\xff\xff"}, with_crc=False),
    "base offset 7": changed(PLAIN, {0: struct.pack(">q", 7)}),
    "more records than there are": changed(PLAIN, {57: struct.pack(">i", 4), 23: struct.pack(">i", 3)}),
    "fewer records than there are": changed(PLAIN, {57: struct.pack(">i", 2), 23: struct.pack(">i", 1)}),
    "a count that is not the deltas'": changed(PLAIN, {57: struct.pack(">i", 2)}),
    "no records": changed(PLAIN[:61], {8: struct.pack(">i", 49), 57: struct.pack(">i", 0)}),
    "records -1": changed(PLAIN, {57: struct.pack(">i", -1)}),
    "a control batch": changed(PLAIN, {21: struct.pack(">h", 0x20)}),
    "a transaction without a producer id": changed(PLAIN, {21: struct.pack(">h", 0x10)}),
    "a record length that lies": changed(PLAIN, {61: b"\x7e"}),
    "a negative record length": changed(PLAIN, {61: b"\x01"}),
    "a producer id without a sequence": batch_at(NOW_MS, producer_id=7, producer_epoch=0),
}


def refused_batches() -> list[ApiRequest]:
    """What a batch may not be; last, that nothing of it was appended."""
    # Where the structure of a record is broken we name the record; Kafka does not.
    more = frozenset({"error_message", "log_start_offset", "record_errors"})
    asked = [
        ApiRequest(name, ApiKey.PRODUCE, version, a_produce(batch, "refused"), more)
        for name, batch in OTHER_BATCHES.items()
        for version in (3, 9)
    ]
    return [create(a_topic("refused")), *asked, fetch("nothing is there", a_fetch("refused"))]


def produce_versions() -> list[ApiRequest]:
    asked = [produce("a plain batch", a_produce(PLAIN, "versions"), version) for version in range(3, 13)]
    asked += [
        produce("all in sync", a_produce(PLAIN, "versions", acks=-1), version) for version in (3, 9, 12)
    ]
    return [create(a_topic("versions")), *asked]


def produce_targets() -> list[ApiRequest]:
    two_rows = a_produce(PLAIN, "targets")
    two_rows.topic_data[0].partition_data *= 2
    return [
        create(a_topic("targets", 2)),
        refuse("an unknown topic", a_produce(PLAIN, "nowhere")),
        refuse("an impossible topic", a_produce(PLAIN, "../x")),
        refuse("an unknown partition", a_produce(PLAIN, "targets", 9)),
        refuse("a negative partition", a_produce(PLAIN, "targets", -1)),
        refuse("acks 2", a_produce(PLAIN, "targets", acks=2)),
        refuse("acks -2", a_produce(PLAIN, "targets", acks=-2)),
        produce("no topics", ProduceRequest(acks=1, timeout_ms=1000)),
        refuse("an unknown id", _by_id(PLAIN, b"\7" * 16), 13),
        refuse("the zero id", _by_id(PLAIN, bytes(16)), 13),
    ]


def _by_id(batch: bytes, topic_id: bytes) -> ProduceRequest:
    request = a_produce(batch, "")
    request.topic_data[0].topic_id = topic_id
    return request


def codecs() -> list[ApiRequest]:
    asked = []
    for codec in CODECS:
        batch = batch_at(NOW_MS, b"x" * 500, b"y", codec=codec)
        asked += [produce(f"{codec.name}", a_produce(batch, "codecs"), version) for version in (3, 6, 7, 9)]
    # Fetch below 10 cannot carry zstd.
    asked += [fetch("all of it", a_fetch("codecs"), version) for version in (4, 9, 10, 12)]
    return [create(a_topic("codecs")), *asked]


def compacted() -> list[ApiRequest]:
    keyless = [batch_at(NOW_MS, b"a", b"b", key=None, codec=codec) for codec in (Codec.NONE, *CODECS)]
    mixed = bytes(build_batch([Record(0, NOW_MS, b"key", b"a"), Record(1, NOW_MS, None, b"b")]))
    some = [Record(index, NOW_MS, None if index % 10 == 3 else b"key", b"a") for index in range(100)]
    keyless += [bytes(build_batch(some, codec=codec)) for codec in (Codec.NONE, Codec.LZ4)]
    asked = [
        refuse(f"keyless {version}", a_produce(batch, "compacted"), version)
        for batch in keyless
        for version in (7, 9)
    ]
    return [
        create(a_topic("compacted", cleanup_policy="compact")),
        *asked,
        refuse("one without a key", a_produce(mixed, "compacted")),
        produce("an empty key", a_produce(batch_at(NOW_MS, key=b""), "compacted")),
        produce("a tombstone", a_produce(bytes(build_batch([Record(0, NOW_MS, b"key", None)])), "compacted")),
        fetch("what is there", a_fetch("compacted")),
    ]


def sizes() -> list[ApiRequest]:
    fitting = batch_at(NOW_MS, b"x" * 900)
    limit = str(len(fitting))
    return [
        create(a_topic("sizes", max_message_bytes=limit)),
        produce("just fits", a_produce(fitting, "sizes")),
        refuse("one byte more", a_produce(batch_at(NOW_MS, b"x" * 901), "sizes")),
        produce("small when compressed", a_produce(batch_at(NOW_MS, b"x" * 5000, codec=Codec.LZ4), "sizes")),
        create(a_topic("zero", max_message_bytes="0")),
        refuse("nothing fits", a_produce(fitting, "zero")),
    ]


def times() -> list[ApiRequest]:
    limits = {"message_timestamp_before_max_ms": str(HOUR_MS), "message_timestamp_after_max_ms": str(HOUR_MS)}
    asked = []
    for minutes in (-90, -30, 0, 30, 90):  # far from the limit: the suite may take minutes to get here
        for codec in (Codec.NONE, Codec.LZ4):
            batch = batch_at(NOW_MS + minutes * 60_000, codec=codec)
            ask = produce if abs(minutes) < 60 else refuse
            asked.append(ask(f"{minutes} minutes {codec.name}", a_produce(batch, "times")))
    spread = [Record(0, NOW_MS, None, b"a"), Record(1, NOW_MS - 2 * HOUR_MS, None, b"b")]
    asked.append(refuse("one of two too old", a_produce(bytes(build_batch(spread)), "times")))
    spread += [Record(2, NOW_MS + 2 * HOUR_MS, b"key", b"c"), Record(3, -1, b"key", b"d")]
    asked.append(refuse("two of four", a_produce(bytes(build_batch(spread)), "times")))
    asked.append(create(a_topic("times-and-keys", cleanup_policy="compact", **limits)))
    asked.append(refuse("times and keys", a_produce(bytes(build_batch(spread)), "times-and-keys")))
    asked.append(produce("no time", a_produce(batch_at(-1), "times")))
    stamped = frozenset({"log_append_time_ms"})
    return [
        create(a_topic("times", **limits)),
        *asked,
        create(a_topic("stamped", message_timestamp_type="LogAppendTime", **limits)),
        produce("an old one", a_produce(batch_at(1000), "stamped"))._replace(apart=stamped),
        create(a_topic("default-times")),
        refuse("a day ahead", a_produce(batch_at(NOW_MS + 24 * HOUR_MS), "default-times")),
        produce("years ago", a_produce(batch_at(1000), "default-times")),
    ]


def sequences() -> list[ApiRequest]:
    def numbered(sequence: int, epoch: int = 0, producer_id: int = 4000, count: int = 2) -> ProduceRequest:
        values = [b"%d" % number for number in range(count)]
        batch = batch_at(
            NOW_MS, *values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
        )
        return a_produce(batch, "sequences", acks=-1)

    def again(name: str, body: ProduceRequest) -> ApiRequest:
        # Kafka returns the batch's own time for a duplicate although the topic keeps the producer's time.
        return produce(name, body)._replace(apart=frozenset({"log_append_time_ms"}))

    return [
        create(a_topic("sequences")),
        produce("first", numbered(0)),
        produce("next", numbered(2)),
        again("the same again", numbered(2)),
        again("the first again", numbered(0)),
        refuse("a gap", numbered(9)),
        refuse("an overlap", numbered(3)),
        refuse("a part of a batch", numbered(2, count=1)),
        produce("a new epoch", numbered(0, epoch=1)),
        refuse("the old epoch", numbered(4)),
        refuse("a new epoch not from 0", numbered(7, epoch=2)),
        produce("unknown, not from 0", numbered(5, producer_id=4001)),
        produce("and on", numbered(7, producer_id=4001)),
        produce("a negative epoch", numbered(0, epoch=-1, producer_id=4002)),
        produce("round the end", numbered(2**31 - 1, producer_id=4003)),
        produce("after the end", numbered(1, producer_id=4003)),
        *(produce("many", numbered(2 * n, producer_id=4004)) for n in range(7)),
        refuse("six batches ago", numbered(0, producer_id=4004)),
        again("five batches ago", numbered(4, producer_id=4004)),
        ApiRequest(
            "who wrote",
            ApiKey.DESCRIBE_PRODUCERS,
            0,
            DescribeProducersRequest(
                topics=[DescribeProducersRequest.Topics(name="sequences", partition_indexes=[0, 1])]
            ),
        ),
    ]


def fetches() -> list[ApiRequest]:
    asked = [create(a_topic("fetches"))]
    asked += [produce("three records", a_produce(PLAIN, "fetches")) for _ in range(3)]
    asked += [fetch("everything", a_fetch("fetches"), version) for version in range(4, 13)]
    asked += [
        fetch(f"from {offset}", a_fetch("fetches", offset)) for offset in (-1, 0, 1, 2, 3, 5, 8, 9, 10, 99)
    ]
    one = len(PLAIN)
    # Not one byte more than a batch: Kafka then adds the first byte of the next, we send whole batches.
    for limit in (0, 1, one - 1, one, 2 * one, 3 * one, 2**31 - 1):
        asked.append(fetch(f"{limit} of a partition", a_fetch("fetches", partition_max_bytes=limit)))
        asked.append(fetch(f"{limit} in all", a_fetch("fetches", max_bytes=limit)))
    asked += [
        fetch("committed only", a_fetch("fetches", isolation_level=1)),
        fetch("an unknown topic", a_fetch("nowhere")),
        fetch("an unknown partition", a_fetch("fetches", partition=5)),
        fetch("no topics", FetchRequest(max_wait_ms=0, min_bytes=1)),
        fetch("waits in vain", a_fetch("fetches", 9, max_wait_ms=20)),
        fetch("a session that is not", a_fetch("fetches", session_id=5, session_epoch=1)),
        fetch("no session wanted", a_fetch("fetches", session_epoch=-1)),
        fetch("a negative session epoch", a_fetch("fetches", session_epoch=-2)),
        *(fetch(f"leader epoch {epoch}", _in_epoch(epoch)) for epoch in (-1, 0, 1)),
        *(fetch(f"last epoch {epoch}", _after_epoch(epoch)) for epoch in (0, 1, 5)),
        *(fetch("an unknown id", _fetch_by_id(b"\7" * 16), version) for version in range(13, 19)),
        fetch("the zero id", _fetch_by_id(bytes(16)), 13),
    ]
    return asked


def _in_epoch(epoch: int) -> FetchRequest:
    request = a_fetch("fetches")
    request.topics[0].partitions[0].current_leader_epoch = epoch
    return request


def _after_epoch(epoch: int) -> FetchRequest:
    request = a_fetch("fetches", 3)
    request.topics[0].partitions[0].last_fetched_epoch = epoch
    return request


def _fetch_by_id(topic_id: bytes) -> FetchRequest:
    request = a_fetch("")
    request.topics[0].topic_id = topic_id
    return request


def offsets() -> list[ApiRequest]:
    def at(timestamp: int, partition: int = 0, topic: str = "offsets", **fields: int) -> ListOffsetsRequest:
        row = ListOffsetsRequest.Topics.Partitions(
            partition_index=partition, timestamp=timestamp, current_leader_epoch=fields.pop("epoch", -1)
        )
        rows = [ListOffsetsRequest.Topics(name=topic, partitions=[row])]
        return ListOffsetsRequest(**({"replica_id": -1} | fields), topics=rows)

    def ask(name: str, body: ListOffsetsRequest, version: int) -> ApiRequest:
        return ApiRequest(name, ApiKey.LIST_OFFSETS, version, body)

    old = 1_600_000_000_000
    asked = [create(a_topic("offsets", 2, retention_ms="-1"))]
    for minutes in (0, 10, 5, 20):
        batch = batch_at(old + minutes * 60_000, b"a", b"b")
        asked.append(produce(f"minute {minutes}", a_produce(batch, "offsets")))
    for version in (1, 2, 4, 6, 7, 8, 9, 10, 11):
        asked += [ask(f"timestamp {special}", at(special), version) for special in range(-7, 1)]
        asked += [
            ask(f"minute {minutes}", at(old + minutes * 60_000), version)
            for minutes in (-1, 0, 1, 5, 6, 10, 11, 20, 21)
        ]
        asked += [
            ask("of an empty partition", at(special, 1), version) for special in (-1, -2, -3, -4, -5, 0)
        ]
    asked += [
        ask("an unknown partition", at(-1, 7), 7),
        ask("an unknown topic", at(-1, topic="nowhere"), 7),
        ask("committed only", at(-1, isolation_level=1), 7),
        *(ask(f"leader epoch {epoch}", at(-1, epoch=epoch), 7) for epoch in (0, 1, 5)),
        ask("by a replica that is none", at(-1, replica_id=3), 7),
        ask("by a debugger", at(-1, replica_id=-2), 7),
    ]
    return asked


def deleted_records() -> list[ApiRequest]:
    def delete(offset: int, partition: int = 0, topic: str = "deleted", version: int = 2) -> ApiRequest:
        row = DeleteRecordsRequest.Topics.Partitions(partition_index=partition, offset=offset)
        topics = [DeleteRecordsRequest.Topics(name=topic, partitions=[row])]
        request = DeleteRecordsRequest(topics=topics, timeout_ms=5000)
        return ApiRequest(f"up to {offset} of {topic}-{partition}", ApiKey.DELETE_RECORDS, version, request)

    return [
        create(a_topic("deleted")),
        *(produce("three records", a_produce(PLAIN, "deleted")) for _ in range(3)),
        delete(4, version=0),
        fetch("below the start", a_fetch("deleted", 0)),
        fetch("from the start on", a_fetch("deleted", 4)),
        delete(2),
        delete(10),
        delete(-2),
        delete(-1),
        fetch("the rest", a_fetch("deleted", 9)),
        delete(0, 7),
        delete(0, topic="nowhere"),
        create(a_topic("only-compacted", cleanup_policy="compact")),
        delete(0, topic="only-compacted"),
    ]


def epochs() -> list[ApiRequest]:
    def ask(
        current: int, epoch: int, version: int = 4, partition: int = 0, topic: str = "epochs"
    ) -> ApiRequest:
        row = OffsetForLeaderEpochRequest.Topics.Partitions(
            partition=partition, current_leader_epoch=current, leader_epoch=epoch
        )
        topics = [OffsetForLeaderEpochRequest.Topics(topic=topic, partitions=[row])]
        request = OffsetForLeaderEpochRequest(topics=topics, **({"replica_id": -1} if version > 2 else {}))
        name = f"epoch {epoch} believing in {current} of {topic}-{partition}"
        return ApiRequest(name, ApiKey.OFFSET_FOR_LEADER_EPOCH, version, request)

    return [
        create(a_topic("epochs")),
        ask(-1, 0),
        produce("three records", a_produce(PLAIN, "epochs")),
        *(
            ask(current, epoch, version)
            for version in (2, 3, 4)
            for current in (-1, 0, 1)
            for epoch in (-1, 0, 1)
        ),
        ask(-1, 0, partition=3),
        ask(-1, 0, topic="nowhere"),
    ]


def producer_ids() -> list[ApiRequest]:
    given = frozenset({"producer_id"})
    asks = [
        ("a new one", InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)),
        (
            "an empty transactional id",
            InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000),
        ),
        (
            "an id to go on with",
            InitProducerIdRequest(transactional_id=None, producer_id=5, producer_epoch=3),
        ),
    ]
    return [
        ApiRequest(name, ApiKey.INIT_PRODUCER_ID, version, body, given)
        for name, body in asks
        for version in (range(6) if body.producer_id < 0 else (3, 4, 5))
    ]


SCENARIOS: dict[str, Sequence[ApiRequest]] = {
    "refused batches": refused_batches(),
    "produce versions": produce_versions(),
    "produce targets": produce_targets(),
    "codecs": codecs(),
    "compacted": compacted(),
    "sizes": sizes(),
    "times": times(),
    "sequences": sequences(),
    "fetches": fetches(),
    "offsets": offsets(),
    "deleted records": deleted_records(),
    "epochs": epochs(),
    "producer ids": producer_ids(),
}
