"""Loads what a broker does not need to be ready, on first use or right after the start (ADR 4)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from odradek.broker.requests.dispatch import load_handler
from odradek.broker.requests.served_apis import SERVED
from odradek.broker.requests.services import Services
from odradek.groups.partitions import CONSUMER_OFFSETS
from odradek.replication.partition import Partition
from odradek.transactions.partitions import TRANSACTION_STATE

if TYPE_CHECKING:
    from odradek.groups.service import GroupService
    from odradek.transactions.service import TransactionService


def coordinate_when_needed(services: Services) -> None:
    """Create each coordinator on first use: by a request, or by a partition of its topic."""
    _coordinate_groups_when_needed(services)
    _coordinate_transactions_when_needed(services)


def _coordinate_groups_when_needed(services: Services) -> None:

    def make() -> GroupService:
        from odradek.broker.coordinators.group_coordination import coordinate_groups  # noqa: PLC0415

        return coordinate_groups(services)

    def changed(partition: Partition) -> None:
        _made = services.groups  # which replaces this function by its own
        services.leaderships[CONSUMER_OFFSETS](partition)

    services.make_groups = make
    services.leaderships[CONSUMER_OFFSETS] = changed


def _coordinate_transactions_when_needed(services: Services) -> None:
    def make() -> TransactionService:
        from odradek.broker.coordinators.transaction_coordination import (  # noqa: PLC0415
            coordinate_transactions,
        )

        return coordinate_transactions(services)

    def changed(partition: Partition) -> None:
        _made = services.transactions  # which replaces this function by its own
        services.leaderships[TRANSACTION_STATE](partition)

    services.make_transactions = make
    services.leaderships[TRANSACTION_STATE] = changed


async def load_the_rest(services: Services) -> None:
    """Load everything that was not needed so far, file by file; requests are served in between."""
    for api_key in SERVED:
        load_handler(api_key)
        await asyncio.sleep(0)
    _made = services.groups, services.transactions
