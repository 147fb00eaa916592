"""The root of every exception that odradek raises on purpose."""

from __future__ import annotations

from odradek.common.error_codes import ErrorCode


class OdradekError(Exception):
    """Something a caller or a user can act on; anything else that escapes is a bug of ours."""


class KafkaError(OdradekError):
    """A fault that has a number on the wire, so that the dispatcher can answer with it."""

    error_code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(self, message: str = "", *, error_code: ErrorCode | None = None) -> None:
        if error_code is not None:
            self.error_code = error_code
        super().__init__(message or self.error_code.name)


class ConfigError(OdradekError):
    """A setting that cannot be used; the message names it and says what would do."""
