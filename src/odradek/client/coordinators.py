"""Which broker coordinates a group or a transactional id: requested once and cached until it moves."""

from __future__ import annotations

from enum import IntEnum

from odradek.client.broker_errors import check
from odradek.client.metadata import Node
from odradek.client.network.brokers import Brokers
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

_FIRST_WITH_MANY_KEYS = 4


class KeyType(IntEnum):
    """The type of a coordinator key, numbered as on the wire."""

    GROUP = 0
    TRANSACTION = 1


class Coordinators:
    """The coordinators that one client knows. Owned by it, on its loop."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._known: dict[tuple[KeyType, str], int] = {}

    async def find(self, key: str, key_type: KeyType = KeyType.GROUP) -> int:
        """The id of the coordinator's broker; CoordinatorNotAvailable and similar errors are retriable."""
        known = self._known.get((key_type, key))
        if known is not None and known in self._brokers.metadata.nodes:
            return known
        node = await self._request(key, key_type)
        self._brokers.metadata.add_node(node)
        self._known[key_type, key] = node.node_id
        return node.node_id

    def forget(self, key: str, key_type: KeyType = KeyType.GROUP) -> None:
        """The coordinator has moved: NOT_COORDINATOR, or the connection is lost."""
        self._known.pop((key_type, key), None)

    async def _request(self, key: str, key_type: KeyType) -> Node:
        connection = await self._brokers.any_connection()
        if connection.versions.serves(ApiKey.FIND_COORDINATOR, at_least=_FIRST_WITH_MANY_KEYS):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            (row,) = (await connection.send_request(request, FindCoordinatorResponse)).coordinators
        else:
            request = FindCoordinatorRequest(key=key)
            if connection.versions.serves(ApiKey.FIND_COORDINATOR, at_least=1):
                request.key_type = key_type
            row = await connection.send_request(request, FindCoordinatorResponse)  # type: ignore[assignment]
        check(row.error_code, row.error_message)
        return Node(row.node_id, row.host, row.port)
