"""Errors of transaction requests as each version of an API has them."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.common.error_codes import ErrorCode
from odradek.protocol.api_key import ApiKey

# KIP-588: until then a fenced producer gets INVALID_PRODUCER_EPOCH.
PRODUCER_FENCED_FROM: Mapping[ApiKey, int] = {
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 2,
    ApiKey.ADD_OFFSETS_TO_TXN: 2,
    ApiKey.END_TXN: 2,
}


def error_for_version(error_code: ErrorCode, version: int, producer_fenced_from: int) -> ErrorCode:
    """The code that clients of this version know."""
    if error_code is ErrorCode.PRODUCER_FENCED and version < producer_fenced_from:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error_code
