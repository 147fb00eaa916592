"""Producer ids: each is assigned once in the lifetime of the cluster, from blocks allocated in the store."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from odradek.common.errors import OdradekError
from odradek.coordination import paths
from odradek.coordination.errors import BadVersion, NoNode
from odradek.coordination.payloads import ProducerIdBlock
from odradek.coordination.store import Node, Store

BLOCK_SIZE = 1000
MAX_PRODUCER_ID = 2**63 - 1


class ProducerIdsExhausted(OdradekError):
    """All producer ids have been assigned."""


class ProducerIds:
    """The ids of this broker. Owned by the broker, on the loop; one store request per thousand ids."""

    def __init__(self, store: Callable[[], Store], broker_id: int) -> None:
        """`store` returns the current session: this object is used by several sessions in turn."""
        self._store = store
        self._broker_id = broker_id
        self._next = 0
        self._end = -1
        self._taking = asyncio.Lock()

    async def next(self) -> int:
        """An id that was never assigned before."""
        async with self._taking:
            if self._next > self._end:
                block = await self.take_block(self._broker_id)
                self._next, self._end = block.first, block.last
            producer_id = self._next
            self._next += 1
            return producer_id

    async def take_block(self, broker_id: int) -> ProducerIdBlock:
        """Allocate the next block; retries if another broker allocated it at the same time."""
        while True:
            node = await self._read()
            taken = ProducerIdBlock.decode(node.payload).last if node.payload else -1
            if taken > MAX_PRODUCER_ID - BLOCK_SIZE:
                raise ProducerIdsExhausted
            block = ProducerIdBlock(broker_id, taken + 1, taken + BLOCK_SIZE)
            with contextlib.suppress(BadVersion):
                await self._store().set(paths.LATEST_PRODUCER_ID_BLOCK, block.encode(), node.stat.version)
                return block

    async def _read(self) -> Node:
        """The node of the last block; empty if there is none yet."""
        store = self._store()
        with contextlib.suppress(NoNode):
            return await store.get(paths.LATEST_PRODUCER_ID_BLOCK)
        await store.ensure_path(paths.LATEST_PRODUCER_ID_BLOCK)
        return await store.get(paths.LATEST_PRODUCER_ID_BLOCK)
