"""Which errors the records of a refused batch get: those that the broker names get their own.

A batch is refused as a whole. ProduceResponse, from version 8 on, names the records at fault by their index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.client.broker_errors import broker_error
from odradek.client.errors import BrokerError

if TYPE_CHECKING:
    from odradek.protocol.messages import ProduceResponse

    PartitionResponse = ProduceResponse.Responses.PartitionResponses


def batch_error(row: PartitionResponse) -> BrokerError:
    """The error of the batch, which the records that were not at fault get."""
    problems = [
        f"record {one.batch_index}: {one.batch_index_error_message or 'refused'}" for one in row.record_errors
    ]
    if not problems:
        return broker_error(row.error_code, row.error_message)
    message = row.error_message or "the batch has invalid records"
    return broker_error(row.error_code, f"{message} ({'; '.join(problems)})")


def record_errors(row: PartitionResponse) -> dict[int, BaseException] | None:
    """The errors of the records at fault by their index in the batch; None if the broker names none."""
    if not row.record_errors:
        return None
    return {
        one.batch_index: broker_error(row.error_code, one.batch_index_error_message or row.error_message)
        for one in row.record_errors
    }
