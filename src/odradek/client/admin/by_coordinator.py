"""The base of calls about groups and transactions: requests to the coordinator, which may move."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from odradek.client.admin.base import AdminBase, ResultOrError
from odradek.client.config import ClientConfig
from odradek.client.coordinators import Coordinators, KeyType
from odradek.client.errors import BrokerError, ClientError, DeadlineExceeded
from odradek.client.metadata import Node
from odradek.client.network.connection import BrokerConnection
from odradek.common.error_codes import ErrorCode

Result = TypeVar("Result")
Key = TypeVar("Key")

CallCoordinator = Callable[[Node, BrokerConnection], Awaitable[Result]]

COORDINATOR_IS_AWAY = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


class CoordinatorAdmin(AdminBase):
    """The part of an admin client that finds the coordinators of groups and transactional ids."""

    def __init__(self, config: ClientConfig) -> None:
        super().__init__(config)
        self._found: Coordinators | None = None

    @property
    def _coordinators(self) -> Coordinators:
        if self._found is None:
            self._found = Coordinators(self.brokers)
        return self._found

    async def _at_coordinator(
        self,
        what: str,
        key: str,
        call: CallCoordinator[Result],
        timeout_ms: int | None,
        key_type: KeyType = KeyType.GROUP,
    ) -> Result:
        """Call the coordinator of a group or transactional id, and again when it moves or is not ready."""
        brokers, coordinators = self.brokers, self._coordinators

        async def attempt() -> Result:
            await brokers.ensure_fresh()
            node_id = await coordinators.find(key, key_type)
            try:
                connection = await brokers.connection(node_id)
                return await call(brokers.metadata.nodes[node_id], connection)
            except ClientError:
                coordinators.forget(key, key_type)
                raise
            except BrokerError as error:
                if error.error_code in COORDINATOR_IS_AWAY:
                    coordinators.forget(key, key_type)
                raise

        return await brokers.retry(what, attempt, timeout_ms=timeout_ms)

    async def _by_coordinator(
        self,
        what: str,
        keys: Iterable[str],
        call: Callable[[Node, BrokerConnection, str], Awaitable[Result]],
        timeout_ms: int | None,
        key_type: KeyType = KeyType.GROUP,
    ) -> dict[str, ResultOrError[Result]]:
        """Send a request for each key to its coordinator, concurrently; a broker's error is an outcome."""

        async def outcome(key: str) -> ResultOrError[Result]:
            def call_for_key(node: Node, connection: BrokerConnection) -> Awaitable[Result]:
                return call(node, connection, key)

            try:
                return await self._at_coordinator(what, key, call_for_key, timeout_ms, key_type)
            except BrokerError as error:
                return error
            except DeadlineExceeded as over:
                if not isinstance(over.last, BrokerError):
                    raise
                return over.last

        wanted = list(dict.fromkeys(keys))
        outcomes = await asyncio.gather(*(outcome(key) for key in wanted))
        return dict(zip(wanted, outcomes, strict=True))


def refuse_wrong_coordinator(outcomes: Mapping[Key, ResultOrError[Result]]) -> None:
    """Raise what the whole request must be repeated for."""
    for outcome in outcomes.values():
        if isinstance(outcome, BrokerError) and outcome.error_code in COORDINATOR_IS_AWAY:
            raise outcome
