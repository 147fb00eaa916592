from __future__ import annotations

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError


def test_the_enum_has_every_code_of_the_wire_with_its_retriable_flag():
    assert len(ErrorCode) == 135
    assert ErrorCode(6) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.is_retriable
    assert not ErrorCode.MESSAGE_TOO_LARGE.is_retriable
    assert ErrorCode.UNKNOWN_SERVER_ERROR == -1


def test_an_error_carries_its_code_and_a_readable_text():
    assert KafkaError(error_code=ErrorCode.INVALID_RECORD).error_code is ErrorCode.INVALID_RECORD
    assert str(KafkaError(error_code=ErrorCode.INVALID_RECORD)) == "INVALID_RECORD"
    assert str(KafkaError("no key", error_code=ErrorCode.INVALID_RECORD)) == "no key"
