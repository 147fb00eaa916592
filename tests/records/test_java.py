"""Java's own code over our bytes: DumpLogSegments, the hashes, and a real broker with a real consumer."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.common.error_codes import ErrorCode
from odradek.coordinator.partitioning import java_hash
from odradek.records.batch import TimestampType, iterate_headers, read_header, stamp
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.control import ControlType, EndTransactionMarker, build_end_transaction_marker
from odradek.records.errors import RecordsError
from odradek.records.kernels.encoding import encode_records
from odradek.records.kernels.hashes import murmur2, to_positive
from odradek.records.record import Record, read_records
from odradek.records.validate import validate_for_produce
from records.broker import PEERS, kafka, produce, wait_for_topic
from records.samples import LIMIT, a_batch, batch_of, patched, some_records
from records.test_segments import as_kafka_prints

pytestmark = pytest.mark.java

KAFKA_VERSION = os.environ.get("KAFKA_VERSION", "4.3.1")
LIBS = (
    Path(os.environ.get("PEERS_CACHE", Path.home() / ".cache" / "peers")) / f"kafka-{KAFKA_VERSION}" / "libs"
)
MAX_MESSAGE_BYTES = 1_048_588


def a_log() -> bytearray:
    """Every codec in several sizes, with markers, log append time, and what a cleaner leaves."""
    batches = [a_batch(count, codec) for codec in Codec for count in (1, 40, 2000)]
    batches.append(build_batch(some_records(), timestamp_type=TimestampType.LOG_APPEND_TIME, codec=Codec.LZ4))
    batches.append(
        build_batch(some_records(), producer_id=4, producer_epoch=1, base_sequence=0, is_transactional=True)
    )
    marker = EndTransactionMarker(ControlType.ABORT, 3)
    batches.append(build_end_transaction_marker(marker, producer_id=4, producer_epoch=1, timestamp_ms=7))
    batches.append(build_batch([Record(5, 9, b"k", b"v")], last_offset_delta=9, delete_horizon_ms=99))
    batches.append(build_batch([], last_offset_delta=9, producer_id=5, producer_epoch=0, base_sequence=3))
    next_offset = 0
    for batch in batches:
        stamp(batch, 0, next_offset, 2)
        next_offset += read_header(batch).last_offset_delta + 1
    return bytearray().join(batches)


def test_dump_log_segments_reads_our_log_to_the_last_record(tmp_path):
    log = a_log()
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(log)
    command = [
        PEERS / "run-class",
        "DumpLogSegments",
        "--deep-iteration",
        "--print-data-log",
        "--files",
        segment,
    ]

    dump = subprocess.run(command, check=True, capture_output=True).stdout.decode()

    headers = [
        " ".join(f"{name}: {field}" for name, field in as_kafka_prints(position, header).items())
        for position, header in iterate_headers(log)
    ]
    assert [line.strip() for line in re.findall(r"^baseOffset: .*$", dump, re.MULTILINE)] == headers
    printed = re.findall(
        r"^\| offset: (\d+) (?:Create|LogAppend)Time: (-?\d+) keySize: (-?\d+) valueSize: (-?\d+)",
        dump,
        re.MULTILINE,
    )
    assert [tuple(map(int, fields)) for fields in printed] == [
        (
            r.offset,
            r.timestamp_ms,
            -1 if r.key is None else len(r.key),
            -1 if r.value is None else len(r.value),
        )
        for position, _ in iterate_headers(log)
        for r in read_records(log, position, max_bytes=LIMIT)
    ]
    assert "endTxnMarker: ABORT coordinatorEpoch: 3" in dump
    assert "headerKeys: [trace,empty,null] key: key-1999" in dump


def test_hashes_are_javas():
    texts = ["", "a", "21", "abcd", "foobar", "my-group", "é\u4e2d", "\U0001f600x", "__consumer_offsets" * 5]
    source = Path(__file__).with_name("Oracle.java")
    command = [
        "java",
        "-Dfile.encoding=UTF-8",
        "-Dsun.jnu.encoding=UTF-8",
        "-cp",
        f"{LIBS}/*",
        str(source),
        *texts,
    ]

    answers = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C.UTF-8"}
    ).stdout

    ours = [(murmur2(text.encode()), java_hash(text)) for text in texts]
    assert answers.split("\n")[:-1] == [f"{digest} {to_positive(digest)} {hashed}" for digest, hashed in ours]


# What a broker says to each; the same as validate_for_produce unless noted below.
ONE_RECORD = bytes(encode_records([b"k"], [b"v"], None, 0, None, None, 0))
TO_PRODUCE = {
    "good": a_batch(),
    "crc": a_batch()[:-1] + b"?",
    "magic 0": patched(a_batch(), 16, "b", 0),
    "magic 1": patched(a_batch(), 16, "b", 1),
    "magic 3": patched(a_batch(), 16, "b", 3),
    "base offset": patched(a_batch(), 0, ">q", 5),
    "count 2": patched(a_batch(), 57, ">i", 2),
    "count 4": patched(a_batch(), 57, ">i", 4),
    "count -1": patched(a_batch(), 57, ">i", -1),
    "no records": build_batch([]),
    "last offset 5": patched(a_batch(), 23, ">i", 5),
    "last offset -1": patched(a_batch(), 23, ">i", -1),
    "control": patched(a_batch(), 21, ">h", 0x20),
    "no sequence": patched(a_batch(), 43, ">q", 7),
    "length short": patched(a_batch(), 8, ">i", 20),
    "length long": patched(a_batch(), 8, ">i", 10**6),
    "truncated": a_batch()[:-1],
    "empty": bytearray(),
    "bytes after": batch_of(ONE_RECORD + b"\x00"),
    "bytes after, packed": batch_of(ONE_RECORD + b"\x00", codec=Codec.GZIP),
    "record missing, packed": batch_of(ONE_RECORD, count=2, codec=Codec.GZIP),
    "record length": batch_of(b"\x7f" + ONE_RECORD[1:]),
    "record length negative": batch_of(b"\x01" + ONE_RECORD[1:]),
    "key length": batch_of(ONE_RECORD[:4] + b"\x7e" + ONE_RECORD[5:]),
    "header key null": batch_of(b"\x14" + ONE_RECORD[1:-1] + b"\x02\x01\x01"),
    "header count negative": batch_of(ONE_RECORD[:-1] + b"\x01"),
    "record attributes": batch_of(ONE_RECORD[:1] + b"\x55" + ONE_RECORD[2:]),
    "unused attribute": patched(a_batch(), 21, ">h", 0x100),
    "too large": build_batch([Record(0, 1, b"k", bytes(MAX_MESSAGE_BYTES))]),
}
# Where Kafka 4.3.1 stumbles (an unexpected exception) or is laxer, and what we answer instead.
BETTER_ANSWERS = {
    "codec 5": (patched(a_batch(), 21, ">h", 5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "no gzip": (batch_of(b"garbage", attributes=1), ErrorCode.INVALID_RECORD),
    "no zstd": (batch_of(b"garbage", attributes=4), ErrorCode.INVALID_RECORD),
    "varint overflow": (batch_of(b"\xff" * 6 + ONE_RECORD), ErrorCode.INVALID_RECORD),
    "offset delta": (batch_of(ONE_RECORD[:3] + b"\x02" + ONE_RECORD[4:]), ErrorCode.INVALID_RECORD),
    "key length -2": (batch_of(b"\x0c\x00\x00\x00\x03\x01\x00"), ErrorCode.INVALID_RECORD),
}


def our_answer(batch: bytes | bytearray) -> ErrorCode:
    try:
        validate_for_produce(
            batch, max_message_bytes=MAX_MESSAGE_BYTES, max_decompressed_bytes=64 * MAX_MESSAGE_BYTES
        )
    except RecordsError as error:
        return error.error_code
    return ErrorCode.NONE


@pytest.mark.slow
def test_a_real_broker_answers_like_our_validator_and_its_consumers_read_our_batches(tmp_path):
    sent = [a_batch(count, codec) for codec in Codec for count in (1, 300)]
    with kafka(tmp_path) as port:
        servers = f"localhost:{port}"
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        for created in admin.create_topics([NewTopic("answers", 1, 1), NewTopic("ours", 1, 1)]).values():
            created.result()
        wait_for_topic(port, "answers", a_batch())

        answers = {name: produce(port, "answers", batch) for name, batch in TO_PRODUCE.items()}
        laxer = {name: produce(port, "answers", batch) for name, (batch, _) in BETTER_ANSWERS.items()}
        wait_for_topic(port, "ours", sent[0])
        for batch in sent[1:]:
            assert produce(port, "ours", batch) is ErrorCode.NONE
        consumed = consume(servers, "ours")

    assert answers == {name: our_answer(batch) for name, batch in TO_PRODUCE.items()}
    assert set(laxer.values()) <= {ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE}
    assert {name: our_answer(batch) for name, (batch, _) in BETTER_ANSWERS.items()} == {
        name: answer for name, (_, answer) in BETTER_ANSWERS.items()
    }
    expected = [record for batch in sent for record in read_records(batch, max_bytes=LIMIT)]
    assert consumed == [
        Record(offset, r.timestamp_ms, r.key, r.value, r.headers) for offset, r in enumerate(expected)
    ]


def consume(servers: str, topic: str) -> list[Record]:
    """Everything in partition 0, by confluent-kafka."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "tests", "enable.partition.eof": True, "log_level": 0}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    records = []
    while (message := consumer.poll(30)) is not None and not message.error():
        headers = tuple((key, value) for key, value in message.headers() or [])
        records.append(
            Record(message.offset(), message.timestamp()[1], message.key(), message.value(), headers)
        )
    consumer.close()
    return records
