"""`loop.create_connection` over the simulated network."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from odradek.testing.simulation.network import ConnectionEnd, SimulatedNetwork
from odradek.testing.simulation.virtual_time import VirtualTimeLoop, current_process


class SimulatedTransport(asyncio.Transport):
    """Stands for the transport of a TCP connection towards its protocol."""

    def __init__(self, end: ConnectionEnd, protocol: asyncio.BufferedProtocol) -> None:
        super().__init__()
        self._end = end
        self._protocol = protocol
        end.on_bytes = self._received
        end.on_close = self._lost

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Send bytes."""
        self._end.send(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        """Send the parts of a message as one."""
        self._end.send(b"".join(bytes(part) for part in list_of_data))

    def is_closing(self) -> bool:
        """Whether the connection has ended."""
        return self._end.is_closed

    def close(self) -> None:
        """Close the connection."""
        if not self._end.is_closed:
            self._end.close()
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        """Close the connection at once."""
        self.close()

    def _received(self, payload: bytes) -> None:
        position = 0
        while position < len(payload) and not self._end.is_closed:
            buffer = memoryview(self._protocol.get_buffer(-1))
            count = min(len(buffer), len(payload) - position)
            buffer[:count] = payload[position : position + count]
            del buffer
            self._protocol.buffer_updated(count)
            position += count

    def _lost(self) -> None:
        self._protocol.connection_lost(ConnectionResetError("connection reset by peer"))


class NetworkedLoop(VirtualTimeLoop):
    """A virtual-time loop whose processes connect through `network`."""

    network: SimulatedNetwork

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], Any], host: str, port: int
    ) -> tuple[SimulatedTransport, Any]:
        """Connect to a listener of the simulation."""
        process = current_process()
        assert process is not None, "only a simulated process connects"
        end = await self.network.connect(process.name, host, port)
        protocol = protocol_factory()
        transport = SimulatedTransport(end, protocol)
        protocol.connection_made(transport)
        return transport, protocol
