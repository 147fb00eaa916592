"""A whole broker for tests that send it messages, or inspect it."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import Any

from odradek.protocol.api_key import ApiKey
from odradek.protocol.headers import decode_response, encode_request
from odradek.protocol.structs import Message
from odradek.testing import Cluster


class RunningBroker(Cluster):
    """A cluster on a directory of the test; settings as `key=value`."""

    def __init__(self, directory: Path, *settings: str) -> None:
        super().__init__(dict(setting.split("=", 1) for setting in settings), data_dir=directory)

    @property
    def address(self) -> str:
        return self.bootstrap

    def ask(self, api_key: ApiKey, version: int, body: Message) -> Any:
        """The answer to a message that no client would send."""
        with socket.create_connection(self.address.split(":"), timeout=60) as connection:
            for part in encode_request(api_key, version, 1, "test", body):
                connection.sendall(part)
            with connection.makefile("rb") as answer:
                (size,) = struct.unpack(">i", answer.read(4))
                return decode_response(api_key, version, answer.read(size))[1]
