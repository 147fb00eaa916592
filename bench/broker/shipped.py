"""Whether the measured build is the shipped one: it refuses a bad record inside a healthy-looking lz4 batch.

The batch has a right CRC and a right frame; only after decompression does one see that a value claims more
bytes than its record has. A broker that skips the check to be fast takes it. Its sound twin must be taken,
so that a refusal cannot have another reason.

    python bench/broker/shipped.py
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from broker.run_setup import Part, RunSetup, main
from brokers import Broker
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import ProduceRequest, ProduceResponse
from odradek.records.batch import HEADER_SIZE, renew_crc
from odradek.records.builder import build_batch_from_columns
from odradek.records.compression import Codec, compress, decompress
from odradek.records.kernels import record_check as kernels
from results import BenchResult, markdown_table, verdict
from wire import ask

TITLE = "shipped build"
TOPIC = "shipped"
PRODUCE_VERSION = 9
RECORDS = 20
VALUE_LENGTH_POSITION = 5
"""In the first record, after one byte each of length, attributes, timestamp and offset delta, key length."""
NEW_TOPIC_SECONDS = 10
NOT_YET = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""What a broker says of a topic that was made a moment ago."""
LONGER_THAN_THE_RECORD = 0x7E
"""63 as a varint; the record has 14 bytes."""


def lz4_batch(*, is_sound: bool) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    values: list[bytes | None] = [b"value %d" % number for number in range(RECORDS)]
    batch = build_batch_from_columns([None] * RECORDS, values, [now_ms] * RECORDS, codec=Codec.LZ4)
    if is_sound:
        return bytes(batch)
    records = bytearray(decompress(Codec.LZ4, bytes(batch[HEADER_SIZE:]), 1 << 20))
    records[VALUE_LENGTH_POSITION] = LONGER_THAN_THE_RECORD
    broken = bytearray(batch[:HEADER_SIZE]) + bytes(compress(Codec.LZ4, bytes(records)))
    broken[8:12] = (len(broken) - 12).to_bytes(4, "big")
    renew_crc(broken, 0, len(broken))
    return bytes(broken)


def answer_to(broker: Broker, batch: bytes) -> str:
    """The error code's name, NONE if the batch was taken."""
    request = ProduceRequest(
        acks=1,
        timeout_ms=10_000,
        topic_data=[
            ProduceRequest.TopicData(
                name=TOPIC,
                partition_data=[ProduceRequest.TopicData.PartitionData(index=0, records=batch)],
            )
        ],
    )
    deadline = time.monotonic() + NEW_TOPIC_SECONDS
    while True:
        response = ask(broker.port, ApiKey.PRODUCE, PRODUCE_VERSION, request)
        assert isinstance(response, ProduceResponse)
        code = ErrorCode(response.responses[0].partition_responses[0].error_code)
        if code not in NOT_YET or time.monotonic() > deadline:
            return code.name


def measure(setup: RunSetup, brokers: tuple[Broker, ...]) -> BenchResult:
    answers = {}
    for broker in brokers:
        broker.create_topic(TOPIC)
        answers[broker.name] = {
            "sound": answer_to(broker, lz4_batch(is_sound=True)),
            "bad": answer_to(broker, lz4_batch(is_sound=False)),
        }
        broker.delete_topic(TOPIC)
    return {"answers": answers, "is_compiled": not str(kernels.__file__).endswith(".py")}


def is_shipped(outcome: BenchResult) -> bool:
    ours = outcome["answers"]["odradek"]
    return bool(ours["sound"] == "NONE" and ours["bad"] != "NONE" and outcome["is_compiled"])


def markdown(outcome: BenchResult) -> str:
    rows = [[who, answers["sound"], answers["bad"]] for who, answers in outcome["answers"].items()]
    return "\n".join(
        [
            markdown_table(["", "sound lz4 batch", "bad record inside an lz4 batch"], rows),
            "",
            verdict(
                "compiled, and refuses the bad record",
                is_shipped(outcome),
                outcome["answers"]["odradek"]["bad"],
            ),
        ]
    )


def plot(outcome: BenchResult, plots: Path) -> None:
    """Nothing to draw."""


PART = Part(TITLE, measure, markdown, plot)

if __name__ == "__main__":
    main(PART)
