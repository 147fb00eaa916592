from __future__ import annotations

from pathlib import Path

from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import FindCoordinatorRequest

from ..on_this_loop import a_broker, run

TRANSACTION, SHARE_GROUP = 1, 2


def test_a_transactional_id_has_a_coordinator_and_a_topic_is_made_for_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path, "transaction.state.log.num.partitions=3") as (server, wire):
            request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["t"])
            (row,) = (await wire.ask(ApiKey.FIND_COORDINATOR, 6, request)).coordinators
            assert (row.error_code, row.node_id) == (ErrorCode.NONE, 0)
            old = FindCoordinatorRequest(key_type=TRANSACTION, key="t")
            assert (await wire.ask(ApiKey.FIND_COORDINATOR, 2, old)).error_code == ErrorCode.NONE
            assert len(server.services.image.topics["__transaction_state"].partitions) == 3

    run(main)


def test_share_groups_are_not_served(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path) as (_, wire):
            request = FindCoordinatorRequest(key_type=SHARE_GROUP, coordinator_keys=["s"])
            (row,) = (await wire.ask(ApiKey.FIND_COORDINATOR, 6, request)).coordinators
            assert (row.error_code, row.node_id) == (ErrorCode.INVALID_REQUEST, -1)

    run(main)
