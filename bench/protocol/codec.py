"""Encode and decode of Produce, Fetch and Metadata messages, beside kio in the same run."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kio import index as kio_index
from kio.serial import entity_reader, entity_writer

from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_request, encode_request, encode_response
from odradek.protocol.messages import (
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from odradek.protocol.structs import Message

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from harness import Measured, Report, measure

RECORDS = bytes(16 * 1024)
TOPIC_ID = bytes(range(16))


def messages() -> list[tuple[Message, int]]:
    """One typical message of each kind, in a version that kio has."""
    partition = FetchRequest.Topics.Partitions
    fetched = FetchResponse.Responses.Partitions
    produced = ProduceResponse.Responses.PartitionResponses
    topic = MetadataResponse.Topics
    return [
        (
            ProduceRequest(
                acks=1,
                timeout_ms=30000,
                topic_data=[
                    ProduceRequest.TopicData(
                        name="orders",
                        partition_data=[ProduceRequest.TopicData.PartitionData(index=0, records=RECORDS)],
                    )
                ],
            ),
            9,
        ),
        (
            ProduceResponse(
                responses=[
                    ProduceResponse.Responses(
                        name="orders", partition_responses=[produced(index=0, base_offset=123456)]
                    )
                ]
            ),
            9,
        ),
        (
            FetchRequest(
                max_wait_ms=500,
                min_bytes=1,
                topics=[
                    FetchRequest.Topics(
                        topic_id=TOPIC_ID,
                        partitions=[
                            partition(partition=number, fetch_offset=99, partition_max_bytes=1 << 20)
                            for number in range(6)
                        ],
                    )
                ],
            ),
            13,
        ),
        (
            FetchResponse(
                responses=[
                    FetchResponse.Responses(
                        topic_id=TOPIC_ID,
                        partitions=[
                            fetched(partition_index=number, high_watermark=1000, records=RECORDS)
                            for number in range(6)
                        ],
                    )
                ],
            ),
            13,
        ),
        (MetadataRequest(topics=[MetadataRequest.Topics(name=f"topic-{n}") for n in range(20)]), 12),
        (
            MetadataResponse(
                cluster_id="cluster",
                brokers=[
                    MetadataResponse.Brokers(node_id=n, host=f"broker-{n}", port=9092) for n in range(3)
                ],
                topics=[
                    topic(
                        name=f"topic-{n}",
                        topic_id=TOPIC_ID,
                        partitions=[
                            topic.Partitions(
                                partition_index=p,
                                leader_id=1,
                                leader_epoch=3,
                                replica_nodes=[1, 2, 3],
                                isr_nodes=[1, 2, 3],
                            )
                            for p in range(10)
                        ],
                    )
                    for n in range(20)
                ],
            ),
            12,
        ),
    ]


def kio_entity(message: Message, version: int) -> type:
    spec = message.SPEC
    load = kio_index.load_request_schema if spec.kind == "request" else kio_index.load_response_schema
    return load(spec.key, version)


def compare(message: Message, version: int, rounds: int) -> tuple[list[Measured], list[Measured]]:
    """Ours and kio's encoding, then decoding, of the same message."""
    wire = message.encode(version)
    entity = kio_entity(message, version)
    read, write = entity_reader(entity), entity_writer(entity)
    theirs, _ = read(wire, 0)
    cls = type(message)

    def kio_encode() -> bytes:
        sink = io.BytesIO()
        write(sink, theirs)
        return sink.getvalue()

    assert kio_encode() == wire == message.encode(version)
    encoding: dict[str, Callable[[], Any]] = {"odradek": lambda: message.encode(version), "kio": kio_encode}
    decoding: dict[str, Callable[[], Any]] = {
        "odradek": lambda: cls.decode(wire, version),
        "kio": lambda: read(wire, 0),
    }
    return measure(encoding, rounds), measure(decoding, rounds)


def whole_produce(rounds: int) -> list[Measured]:
    """A 16 KiB produce request from its frame, and its answer to parts for the socket."""
    (request, version), (response, _) = messages()[:2]
    frame = b"".join(encode_request(ApiKey.PRODUCE, version, 7, "client", request))[4:]

    def serve() -> list[Any]:
        start, _, _ = decode_request(frame)
        return encode_response(start.api_key, start.version, start.correlation_id, response)

    return measure({"odradek": serve}, rounds)


def main(rounds: int = 9) -> None:
    report = Report("Protocol: ours beside kio")
    for message, version in messages():
        name = f"{message.SPEC.name} v{version}"
        encoding, decoding = compare(message, version, rounds)
        report.add(f"{name} encode", encoding)
        report.add(f"{name} decode", decoding)
    report.add("16 KiB produce: decode, encode answer", whole_produce(rounds))
    report.show()


if __name__ == "__main__":
    main()
