"""The root of every exception that odradek raises on purpose."""

from __future__ import annotations

from odradek.common.error_codes import ErrorCode


class OdradekError(Exception):
    """An error that a caller or a user can act on; any other exception is a bug."""


class KafkaError(OdradekError):
    """An error with an error code of the protocol, which the dispatcher can send as the response."""

    error_code: ErrorCode = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(self, message: str = "", *, error_code: ErrorCode | None = None) -> None:
        if error_code is not None:
            self.error_code = error_code
        super().__init__(message or self.error_code.name)


class ConfigError(OdradekError):
    """A setting that cannot be used; the message names it and says what is valid."""
