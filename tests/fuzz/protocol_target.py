"""Any bytes through every decoder: only typed errors, both walkers agree, memory stays bounded."""

from __future__ import annotations

import tracemalloc
from functools import cache
from random import Random
from typing import Any

from odradek.protocol import messages, native, walker
from odradek.protocol.compile import compile_plan
from odradek.protocol.errors import DecodeError
from odradek.protocol.limits import DecodeLimits
from odradek.protocol.schema import FieldSpec, load_all
from odradek.protocol.structs import Message, Struct

LIMITS = DecodeLimits(max_elements=10_000, max_unknown_tags=100)
MEMORY_PER_FRAME_BYTE = 100
# An error with its path and traceback, and the objects of a message that is all defaults.
FIXED_ALLOWANCE = 40_000


@cache
def every_version() -> list[tuple[type[Message], int]]:
    return [
        (getattr(messages, name), version)
        for name, spec in load_all().items()
        for version in range(spec.versions.low, spec.versions.high + 1)
    ]


CHOICES = len(every_version())


@cache
def plans(cls: type[Message], version: int) -> tuple[Any, Any]:
    plan = compile_plan(cls, cls.SPEC, version)
    return native.prepare(plan), walker.prepare(plan)


def check(chosen: int, frame: bytes) -> None:
    """Decode `frame` as the chosen message version; AssertionError where a promise breaks."""
    cls, version = every_version()[chosen % len(every_version())]
    compiled, interpreted = plans(cls, version)
    tracing = tracemalloc.is_tracing()
    if tracing:
        tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    result = _outcome(native.decode, compiled, frame)
    if tracing:
        used = tracemalloc.get_traced_memory()[1] - before
        assert used <= MEMORY_PER_FRAME_BYTE * len(frame) + FIXED_ALLOWANCE, (cls, version, frame.hex(), used)
    assert described(result) == described(_outcome(walker.decode, interpreted, frame)), (
        cls,
        version,
        frame.hex(),
    )
    if isinstance(result, tuple):
        again = native.encode(compiled, result[0])
        assert again == walker.encode(interpreted, result[0]), (cls, version, frame.hex())
        assert described(_outcome(native.decode, compiled, again))[0] == described(result)[0], (
            cls,
            version,
            frame.hex(),
        )


def _outcome(decode: Any, plan: Any, frame: bytes) -> Any:
    try:
        return decode(plan, frame, 0, LIMITS)
    except DecodeError as error:
        return error


def described(outcome: Any) -> tuple[str, int]:
    """An outcome in comparable form; by text, for a float may be NaN."""
    if isinstance(outcome, DecodeError):
        return str(outcome), outcome.position
    return _text(outcome[0]), outcome[1]


def _text(value: Any) -> str:
    if isinstance(value, memoryview):
        return value.hex()
    if isinstance(value, list):
        return str([_text(element) for element in value])
    if isinstance(value, Struct):
        return str([_text(getattr(value, name)) for name in value.__slots__])
    return repr(value)


def seed(chosen: int, random: Random) -> bytes:
    """A valid message of the chosen version with random content."""
    cls, version = every_version()[chosen % len(every_version())]
    return _fill(cls, cls.SPEC.fields, version, random).encode(version)


def _fill(cls: Any, fields: tuple[FieldSpec, ...], version: int, random: Random) -> Any:
    return cls(
        **{
            field.attribute: _value(cls, field, version, random)
            for field in fields
            if version in field.versions and random.random() < 0.9
        }
    )


def _value(cls: Any, field: FieldSpec, version: int, random: Random) -> Any:
    if version in field.nullable and random.random() < 0.2:
        return None
    if field.is_array:
        return [_one(cls, field, version, random) for _ in range(random.choice((0, 1, 1, 2, 3)))]
    return _one(cls, field, version, random)


def _one(cls: Any, field: FieldSpec, version: int, random: Random) -> Any:
    if field.fields:
        return _fill(getattr(cls, field.class_name), field.fields, version, random)
    return {
        "bool": lambda: random.random() < 0.5,
        "float64": lambda: random.uniform(-1e9, 1e9),
        "string": lambda: random.choice(("", "orders", "größe", "x" * random.randint(0, 200))),
        "bytes": lambda: random.randbytes(random.randint(0, 40)),
        "records": lambda: random.randbytes(random.randint(0, 80)),
        "uuid": lambda: random.randbytes(16),
    }.get(field.type, lambda: random.choice((0, 1, 5, 100)))()
