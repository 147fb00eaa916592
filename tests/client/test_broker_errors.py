from __future__ import annotations

import pytest

from odradek.client import broker_errors
from odradek.client.errors import BrokerError, is_retriable
from odradek.common.error_codes import ErrorCode


@pytest.mark.parametrize("code", [code for code in ErrorCode if code is not ErrorCode.NONE])
def test_every_code_has_a_class_of_its_own(code):
    with pytest.raises(getattr(broker_errors, broker_errors.class_name(code)), match="why") as caught:
        broker_errors.check(code, "why")
    assert caught.value.error_code is code
    assert is_retriable(caught.value) is code.is_retriable


def test_no_error_is_no_exception():
    broker_errors.check(ErrorCode.NONE, None)


def test_a_code_of_a_later_kafka_is_reported_by_its_number():
    with pytest.raises(BrokerError, match="error code 3000: news"):
        broker_errors.check(3000, "news")


def test_an_error_without_words_has_the_name_of_its_code():
    assert str(broker_errors.TopicAlreadyExists()) == "TOPIC_ALREADY_EXISTS"
