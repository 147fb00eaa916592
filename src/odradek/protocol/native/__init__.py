"""The compiled walker: ImportError where it was not compiled; codec.py then takes walker.py."""

from odradek.protocol.native.plan import Plan, prepare
from odradek.protocol.native.reader import decode, new_struct
from odradek.protocol.native.writer import encode, encode_frame

__all__ = ["Plan", "decode", "encode", "encode_frame", "new_struct", "prepare"]
