"""Producer ids: each is given out once in the life of the cluster, from blocks taken from the store."""

from __future__ import annotations

import asyncio

from odradek.common.errors import OdradekError
from odradek.coordination import paths
from odradek.coordination.errors import BadVersion, NodeExists, NoNode
from odradek.coordination.payloads import ProducerIdBlock
from odradek.coordination.store import Store

BLOCK_SIZE = 1000
MAX_PRODUCER_ID = 2**63 - 1


class ProducerIdsExhausted(OdradekError):
    """Nine quintillion producers have been here."""


class ProducerIds:
    """The ids of this broker. Owned by the broker, on the loop; the store is asked once per thousand."""

    def __init__(self, store: Store, broker_id: int) -> None:
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
            try:
                node = await self._store.get(paths.LATEST_PRODUCER_ID_BLOCK)
            except NoNode:
                block = ProducerIdBlock(self._broker_id, 0, BLOCK_SIZE - 1)
                try:
                    await self._store.create(paths.LATEST_PRODUCER_ID_BLOCK, block.encode())
                except NodeExists:
                    continue
                return block
            taken = ProducerIdBlock.decode(node.payload)
            if taken.last > MAX_PRODUCER_ID - BLOCK_SIZE:
                raise ProducerIdsExhausted
            block = ProducerIdBlock(self._broker_id, taken.last + 1, taken.last + BLOCK_SIZE)
            try:
                await self._store.set(paths.LATEST_PRODUCER_ID_BLOCK, block.encode(), node.stat.version)
            except BadVersion:
                continue
            return block
