"""Who is served while a broker starts."""

from __future__ import annotations

from typing import Any, cast

from broker.wire import request_frame
from odradek.broker.requests.startup_request_blocker import StartupRequestBlocker
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import MetadataRequest, UpdateMetadataRequest


class Connection:
    """Notes whether it is read."""

    def __init__(self) -> None:
        self.is_read = True
        self.is_closed = False

    def pause(self) -> None:
        self.is_read = False

    def resume(self) -> None:
        self.is_read = True


class Dispatcher:
    """Notes the frames that it gets."""

    def __init__(self) -> None:
        self.served: list[tuple[Any, bytes]] = []

    def handle(self, connection: Any, frame: memoryview, exchange: Any) -> None:
        self.served.append((connection, bytes(frame)))


METADATA = request_frame(ApiKey.METADATA, 12, MetadataRequest(topics=None), 1)[4:]
CONTROL = request_frame(ApiKey.UPDATE_METADATA, 8, UpdateMetadataRequest(), 1)[4:]


def test_clients_wait_until_the_gate_opens_and_the_controller_does_not() -> None:
    dispatcher, controller, client, gone = Dispatcher(), Connection(), Connection(), Connection()
    blocker = StartupRequestBlocker(cast(Any, dispatcher))

    def arrive(connection: Connection, frame: bytes) -> None:
        received = bytearray(frame)
        blocker.handle(cast(Any, connection), memoryview(received), cast(Any, None))
        received[:] = bytes(len(received))  # the buffer is used again

    arrive(client, METADATA)
    arrive(gone, METADATA)
    arrive(controller, CONTROL)
    assert dispatcher.served == [(controller, CONTROL)]
    assert (controller.is_read, client.is_read) == (True, False)

    gone.is_closed = True
    blocker.open()
    assert dispatcher.served == [(controller, CONTROL), (client, METADATA)]
    assert client.is_read
    arrive(client, METADATA)
    assert len(dispatcher.served) == 3


def test_a_frame_without_an_api_key_waits_with_the_clients() -> None:
    dispatcher = Dispatcher()
    blocker = StartupRequestBlocker(cast(Any, dispatcher))
    blocker.handle(cast(Any, Connection()), memoryview(b"\x00"), cast(Any, None))
    assert dispatcher.served == []
    blocker.open()
    assert len(dispatcher.served) == 1
