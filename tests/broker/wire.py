"""A client that sends bytes: valid requests of any version, and whatever else a socket can carry."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response, encode_request
from odradek.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    FetchRequest,
    ProduceRequest,
    UpdateFeaturesRequest,
)
from odradek.protocol.structs import Message
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.record import Record

TopicData = ProduceRequest.TopicData
Wanted = FetchRequest.Topics.Partitions


class ClosedByBroker(Exception):
    """The broker has ended the connection."""


class WireClient:
    """One connection, asked and answered in turn."""

    def __init__(self, address: str, timeout_seconds: float = 60) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=timeout_seconds)
        self.sent = 0

    def __enter__(self) -> WireClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send_bytes(self, raw: bytes) -> None:
        self.socket.sendall(raw)

    def send(self, api_key: ApiKey, version: int, body: Message) -> int:
        """Send a request; its correlation id."""
        self.sent += 1
        self.socket.sendall(request_frame(api_key, version, body, self.sent))
        return self.sent

    def receive_frame(self) -> bytes:
        """The next frame without its size; ClosedByBroker if there will be none."""
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def receive(self, api_key: ApiKey, version: int) -> Any:
        return decode_response(api_key, version, self.receive_frame())[1]

    def ask(self, api_key: ApiKey, version: int, body: Message) -> Any:
        asked = self.send(api_key, version, body)
        answered, response = decode_response(api_key, version, self.receive_frame())
        assert answered == asked
        return response

    def is_closed_by_broker(self) -> bool:
        """Wait for the end of the connection; False if bytes come instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _read(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            try:
                piece = self.socket.recv(min(size - len(received), 1 << 20))
            except ConnectionError as error:
                raise ClosedByBroker(str(error)) from error
            if not piece:
                raise ClosedByBroker(f"after {len(received)} of {size} bytes")
            received += piece
        return bytes(received)


def request_frame(api_key: ApiKey, version: int, body: Message, correlation_id: int = 1) -> bytes:
    parts = encode_request(api_key, version, correlation_id, "test", body)
    return b"".join(bytes(part) for part in parts)


def a_batch(*values: bytes, key: bytes | None = b"key", **fields: Any) -> bytes:
    """A batch as a producer sends it; `codec`, `timestamp_ms` and everything that the builder takes."""
    # Now, since retention takes old ones.
    timestamp_ms = fields.pop("timestamp_ms", time.time_ns() // 1_000_000)
    records = [Record(number, timestamp_ms, key, value) for number, value in enumerate(values)]
    return bytes(build_batch(records, **({"codec": Codec.NONE} | fields)))


def a_produce(batch: bytes | None, topic: str, partition: int = 0, *, acks: int = 1) -> ProduceRequest:
    part = TopicData.PartitionData(index=partition, records=batch)
    return ProduceRequest(
        acks=acks, timeout_ms=30_000, topic_data=[TopicData(name=topic, partition_data=[part])]
    )


def a_fetch(
    topic: str, offset: int = 0, *, partition: int = 0, partition_max_bytes: int = 1 << 20, **fields: int
) -> FetchRequest:
    wanted = Wanted(partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
    return FetchRequest(
        **({"min_bytes": 1, "max_bytes": 50 << 20} | fields),
        topics=[FetchRequest.Topics(topic=topic, partitions=[wanted])],
    )


def a_topic(name: str, partitions: int = 1, **configs: str) -> CreateTopicsRequest:
    """One topic; in the names of settings `_` stands for a dot."""
    given = [
        CreateTopicsRequest.Topics.Configs(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    made = CreateTopicsRequest.Topics(
        name=name, num_partitions=partitions, replication_factor=1, configs=given
    )
    return CreateTopicsRequest(topics=[made], timeout_ms=30_000)


def set_transaction_version(address: str, level: int) -> None:
    """Finalize a level of the feature `transaction.version`, and wait until the broker says so."""
    row = UpdateFeaturesRequest.FeatureUpdates
    asked = ApiVersionsRequest(client_software_name="test", client_software_version="1")

    def finalized(client: WireClient) -> int:
        answer = client.ask(ApiKey.API_VERSIONS, 4, asked)
        levels = {one.name: one.max_version_level for one in answer.finalized_features}
        return int(levels.get("transaction.version", 0))

    with WireClient(address) as client:
        upgrade_type = 1 if level > finalized(client) else 2
        update = row(feature="transaction.version", max_version_level=level, upgrade_type=upgrade_type)
        answer = client.ask(
            ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(feature_updates=[update], timeout_ms=30_000)
        )
        assert answer.error_code == ErrorCode.NONE, answer.error_message
        assert finalized(client) == level


def the_row(response: Any) -> Any:
    """The only partition of the only topic of a produce or fetch response."""
    (topic,) = response.responses
    (row,) = getattr(topic, "partition_responses", None) or topic.partitions
    return row
