from __future__ import annotations

from pathlib import Path

from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import FindCoordinatorRequest, InitProducerIdRequest

from ..on_this_loop import a_broker, run

TRANSACTION = 1
REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_a_transactional_id_is_refused_with_the_error_on_which_clients_give_up(tmp_path: Path) -> None:
    async def main() -> None:
        async with a_broker(tmp_path) as (_, wire):
            request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["t"])
            (row,) = (await wire.ask(ApiKey.FIND_COORDINATOR, 6, request)).coordinators
            assert (row.error_code, row.node_id) == (REFUSED, -1)
            assert "not offered yet" in row.error_message
            old = FindCoordinatorRequest(key_type=TRANSACTION, key="t")
            assert (await wire.ask(ApiKey.FIND_COORDINATOR, 2, old)).error_code == REFUSED
            init = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000)
            answer = await wire.ask(ApiKey.INIT_PRODUCER_ID, 5, init)
            assert (answer.error_code, answer.producer_id) == (REFUSED, -1)

    run(main)
