"""Chooses the walker between bytes and messages: native/ if it was compiled, else walker.py."""

from __future__ import annotations

from odradek.common.interpreted import warn_interpreted

try:
    from odradek.protocol.native import Plan, decode, encode, encode_frame, new_struct, prepare

    is_compiled = True
except ImportError:
    from odradek.protocol.walker import (  # type: ignore[assignment]
        Plan,
        decode,
        encode,
        encode_frame,
        new_struct,
        prepare,
    )

    is_compiled = False
    warn_interpreted()

__all__ = ["Plan", "decode", "encode", "encode_frame", "is_compiled", "new_struct", "prepare"]
