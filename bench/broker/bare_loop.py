"""The limit beside the figures: a bare loop that takes produce requests and writes their bytes to files.

It is no broker: no checks, no CRC, no offsets to trust, no indexes, no waiting. It receives what the socket
has (at most as much as our broker takes at once), writes each batch with one call, and answers enough for a
client to go on. A broker in Python with one thread cannot need less CPU for a gigabyte than this.

    python bench/broker/bare_loop.py PORT DIRECTORY PARTITIONS

Produce request, versions 3-7, and the answer:

    int16 api key 0, int16 version, int32 correlation id, string client id
    string transactional id (-1: none), int16 acks, int32 timeout
    int32 count of topics: string name, int32 count of partitions: int32 index, int32 size, batch

    int32 size, int32 correlation id
    int32 count of topics: string name, int32 count of partitions:
        int32 index, int16 error, int64 base offset, int64 append time, int64 log start offset
    int32 throttle time
"""

from __future__ import annotations

import os
import select
import socket
import sys
from pathlib import Path
from struct import Struct

from odradek.net.server import RECEIVE_BUFFER_BYTES
from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_request, encode_response
from odradek.protocol.messages import ApiVersionsResponse, MetadataResponse

INT16, INT32 = Struct(">h"), Struct(">i")
REQUEST_START = Struct(">hhi")
ACKS_TIMEOUT_TOPICS = Struct(">hii")
PARTITION = Struct(">ii")
ANSWER_START = Struct(">iii")
PARTITION_ANSWER = Struct(">ihqqq")
NO_THROTTLE = INT32.pack(0)
SERVED = {ApiKey.PRODUCE: (3, 7), ApiKey.METADATA: (1, 8), ApiKey.API_VERSIONS: (0, 4)}


class Connection:
    """Bytes that came and are not a whole frame yet."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.buffer = memoryview(bytearray(8 * RECEIVE_BUFFER_BYTES))
        self.filled = 0


class BareLoopServer:
    """The loop and its files, one for each partition of any topic."""

    def __init__(self, port: int, directory: Path, partitions: int) -> None:
        self.port = port
        self.files = [
            os.open(directory / f"{index}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for index in range(partitions)
        ]
        self.listening = socket.create_server(("127.0.0.1", port))
        self.listening.setblocking(False)

    def run(self) -> None:
        poll = select.epoll()
        poll.register(self.listening, select.EPOLLIN)
        connections: dict[int, Connection] = {}
        while True:
            for fd, _ in poll.poll():
                if fd == self.listening.fileno():
                    accepted, _ = self.listening.accept()
                    accepted.setblocking(False)
                    accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    poll.register(accepted, select.EPOLLIN)
                    connections[accepted.fileno()] = Connection(accepted)
                elif not self.receive(connections[fd]):
                    poll.unregister(fd)
                    connections.pop(fd).socket.close()

    def receive(self, connection: Connection) -> bool:
        """Read available bytes and handle every complete frame; False when the client has disconnected."""
        buffer, filled = connection.buffer, connection.filled
        try:
            count = connection.socket.recv_into(buffer[filled : filled + RECEIVE_BUFFER_BYTES])
        except ConnectionError:
            return False
        if not count:
            return False
        filled += count
        position = 0
        while filled - position >= 4:
            (size,) = INT32.unpack_from(buffer, position)
            if filled - position < 4 + size:
                break
            answer = self.handle(buffer[position + 4 : position + 4 + size])
            if answer:
                connection.socket.send(answer)
            position += 4 + size
        if position:
            # The rest of a frame moves to the front; most often there is none.
            buffer[: filled - position] = bytes(buffer[position:filled])
        connection.filled = filled - position
        return True

    def handle(self, frame: memoryview) -> bytes:
        api_key, version, correlation_id = REQUEST_START.unpack_from(frame)
        if api_key == ApiKey.PRODUCE:
            return self.produce(frame, correlation_id)
        if api_key == ApiKey.METADATA:
            return self.metadata(frame, version, correlation_id)
        return self.api_versions(version, correlation_id)

    def produce(self, frame: memoryview, correlation_id: int) -> bytes:
        position = skip_string(frame, REQUEST_START.size)
        position = skip_string(frame, position)
        acks, _, topics = ACKS_TIMEOUT_TOPICS.unpack_from(frame, position)
        position += ACKS_TIMEOUT_TOPICS.size
        answer = bytearray(ANSWER_START.pack(0, correlation_id, topics))
        for _ in range(topics):
            name_start = position
            position = skip_string(frame, position)
            answer += frame[name_start : position + 4]
            (partitions,) = INT32.unpack_from(frame, position)
            position += 4
            for _ in range(partitions):
                index, size = PARTITION.unpack_from(frame, position)
                position += PARTITION.size
                os.write(self.files[index], frame[position : position + size])
                position += size
                answer += PARTITION_ANSWER.pack(index, 0, 0, -1, 0)
        answer += NO_THROTTLE
        INT32.pack_into(answer, 0, len(answer) - 4)
        return bytes(answer) if acks else b""

    def metadata(self, frame: memoryview, version: int, correlation_id: int) -> bytes:
        _, _, request = decode_request(frame)
        row = MetadataResponse.Topics.Partitions
        partitions = [
            row(partition_index=index, leader_id=0, replica_nodes=[0], isr_nodes=[0])
            for index in range(len(self.files))
        ]
        response = MetadataResponse(
            brokers=[MetadataResponse.Brokers(node_id=0, host="127.0.0.1", port=self.port)],
            cluster_id="floor",
            controller_id=0,
            topics=[
                MetadataResponse.Topics(name=topic.name, partitions=partitions)
                for topic in getattr(request, "topics", None) or []
            ],
        )
        return b"".join(encode_response(ApiKey.METADATA, version, correlation_id, response))

    def api_versions(self, version: int, correlation_id: int) -> bytes:
        row = ApiVersionsResponse.ApiKeys
        keys = [row(api_key=key, min_version=low, max_version=high) for key, (low, high) in SERVED.items()]
        response = ApiVersionsResponse(api_keys=keys)
        return b"".join(encode_response(ApiKey.API_VERSIONS, version, correlation_id, response))


def skip_string(frame: memoryview, position: int) -> int:
    size: int = INT16.unpack_from(frame, position)[0]
    return position + 2 + max(size, 0)


if __name__ == "__main__":
    BareLoopServer(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])).run()
