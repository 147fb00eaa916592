"""Subscriptions by pattern. RE2 matches in linear time, so that no pattern can block the broker."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError

MAX_PATTERNS = 256


@lru_cache(MAX_PATTERNS)
def compiled(regex: str) -> Any:
    """The compiled pattern; INVALID_REGULAR_EXPRESSION if it is not valid."""
    import re2  # noqa: PLC0415  # most brokers never see a pattern, and it takes a while to load

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        raise KafkaError(
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
            error_code=ErrorCode.INVALID_REGULAR_EXPRESSION,
        ) from error


def matching(regex: str, names: Iterable[str]) -> frozenset[str]:
    """The names that match the pattern completely."""
    pattern = compiled(regex)
    return frozenset(name for name in names if pattern.fullmatch(name))
