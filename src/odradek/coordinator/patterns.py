"""Patterns that clients send. RE2 matches in linear time, so that no pattern can block the broker."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError

MAX_PATTERNS = 256


@lru_cache(MAX_PATTERNS)
def compiled(regex: str, field: str) -> Any:
    """The compiled pattern; INVALID_REGULAR_EXPRESSION, naming the field, if it is not valid."""
    import re2  # noqa: PLC0415  # most brokers never see a pattern, and it takes a while to load

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        raise KafkaError(
            f"{field} `{regex}` is not a valid regular expression: {error}.",
            error_code=ErrorCode.INVALID_REGULAR_EXPRESSION,
        ) from error
