"""The errors of messages: what is wrong, in which field, at which byte."""

from __future__ import annotations

from odradek.common.error_codes import ErrorCode
from odradek.common.errors import KafkaError


class ProtocolError(KafkaError):
    """A message that cannot be read or written."""

    error_code = ErrorCode.INVALID_REQUEST


class _FieldError(ProtocolError):
    """A fault in one field; `path` grows outwards while the error leaves the nested structs."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.path = ""
        super().__init__(problem)

    def enter(self, step: str) -> None:
        """Put one outer step, `Topics` or `[3]`, in front of the path."""
        dot = "." if self.path and not self.path.startswith("[") else ""
        self.path = f"{step}{dot}{self.path}"


class DecodeError(_FieldError):
    """Invalid bytes: `Topics[3].Index at byte 40: needs 4 bytes, 2 left`."""

    def __init__(self, problem: str, position: int) -> None:
        self.position = position
        super().__init__(problem)

    def __str__(self) -> str:
        return f"{self.path or 'message'} at byte {self.position}: {self.problem}"


class EncodeError(_FieldError):
    """A value that its field cannot hold in this version."""

    error_code = ErrorCode.UNKNOWN_SERVER_ERROR

    def __str__(self) -> str:
        return f"{self.path or 'message'}: {self.problem}"


class UnsupportedVersion(ProtocolError):
    """The message exists, but not in this version."""

    error_code = ErrorCode.UNSUPPORTED_VERSION

    def __init__(self, name: str, version: int, low: int, high: int) -> None:
        self.name = name
        self.version = version
        super().__init__(f"{name} has versions {low}-{high}, not {version}")


class SchemaError(Exception):
    """A schema file that does not follow its grammar: a bug, never a client's error."""
