"""Producer ids: each is given out once in the life of the cluster, from blocks taken from the store."""

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
    """Nine quintillion producers have been here."""


class ProducerIds:
    """The ids of this broker. Owned by the broker, on the loop; the store is asked once per thousand."""

    def __init__(self, store: Callable[[], Store], broker_id: int) -> None:
        """`store` gives the session of the moment: this object outlives sessions."""
        self._store = store
        self._broker_id = broker_id
        self._next = 0
        self._end = -1
        self._taking = asyncio.Lock()

    async def next(self) -> int:
        """An id that nobody had and nobody will have."""
        async with self._taking:
            if self._next > self._end:
                block = await self._take_block()
                self._next, self._end = block.first, block.last
            producer_id = self._next
            self._next += 1
            return producer_id

    async def _take_block(self) -> ProducerIdBlock:
        """The block after the last one; again if another broker took it in the same moment."""
        while True:
            node = await self._read()
            taken = ProducerIdBlock.decode(node.payload).last if node.payload else -1
            if taken > MAX_PRODUCER_ID - BLOCK_SIZE:
                raise ProducerIdsExhausted
            block = ProducerIdBlock(self._broker_id, taken + 1, taken + BLOCK_SIZE)
            with contextlib.suppress(BadVersion):
                await self._store().set(paths.LATEST_PRODUCER_ID_BLOCK, block.encode(), node.stat.version)
                return block

    async def _read(self) -> Node:
        """The node of the last block; empty if none was taken yet."""
        store = self._store()
        with contextlib.suppress(NoNode):
            return await store.get(paths.LATEST_PRODUCER_ID_BLOCK)
        await store.ensure_path(paths.LATEST_PRODUCER_ID_BLOCK)
        return await store.get(paths.LATEST_PRODUCER_ID_BLOCK)
