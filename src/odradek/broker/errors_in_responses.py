"""A fault of a whole request as a response of its API."""

from __future__ import annotations

from odradek.common.error_codes import ErrorCode
from odradek.protocol.api import response_class
from odradek.protocol.api_key import ApiKey
from odradek.protocol.structs import Message


def error_response(api_key: ApiKey, request: Message, error_code: ErrorCode, message: str) -> Message | None:
    """The response that carries the error at its top; None if the API has no place for it there."""
    made = response_class(api_key)()
    if not hasattr(made, "error_code"):
        return None
    made.error_code = error_code
    if hasattr(made, "error_message"):
        made.error_message = message
    return made
