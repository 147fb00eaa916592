"""What a decoder builds stays within 100 times the frame, even for the densest frame of every schema."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from odradek.protocol import messages
from odradek.protocol.errors import DecodeError
from odradek.protocol.messages import MetadataResponse
from odradek.protocol.schema import FieldSpec, load_all
from odradek.protocol.structs import Message, Struct

ELEMENTS = 300
MEMORY_PER_FRAME_BYTE = 100
FIXED_ALLOWANCE = 2_000
SCALARS = {"bool": False, "float64": 0.0, "string": "", "bytes": b"", "records": b"", "uuid": bytes(16)}


def densest(cls: type[Struct], fields: tuple[FieldSpec, ...], version: int) -> Iterator[Struct]:
    """One struct per array below `cls`, with many elements of the fewest bytes there, defaults elsewhere."""
    for field in fields:
        if version not in field.versions or not (field.is_array or field.fields):
            continue
        nested = getattr(cls, field.class_name) if field.fields else None
        element = nested() if nested else SCALARS.get(field.type, 0)
        if field.is_array:
            yield cls(**{field.attribute: [element] * ELEMENTS})
        for inner in densest(nested, field.fields, version) if nested else ():
            yield cls(**{field.attribute: [inner] if field.is_array else inner})


def peak_of_decoding(cls: type[Message], frame: bytes, version: int) -> int:
    cls.decode(frame, version)
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    decoded = cls.decode(frame, version)
    _, peak = tracemalloc.get_traced_memory()
    assert decoded[1] == len(frame)
    return peak - before


@pytest.fixture(scope="module", autouse=True)
def _traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("name", load_all())
def test_the_densest_frames_stay_within_the_bound(name: str) -> None:
    cls = getattr(messages, name)
    spec = cls.SPEC
    oldest, flexible = spec.versions.low, min(spec.flexible.low, spec.versions.high)
    for version in {oldest, flexible, spec.versions.high}:
        for message in densest(cls, spec.fields, version):
            frame = message.encode(version)
            assert (
                peak_of_decoding(cls, frame, version) <= MEMORY_PER_FRAME_BYTE * len(frame) + FIXED_ALLOWANCE
            )


def test_a_count_that_lies_allocates_nothing() -> None:
    frame = MetadataResponse().encode(9)[:4] + b"\xff\xff\xff\xff\x07" + bytes(1000)
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    with pytest.raises(DecodeError, match="cannot fit"):
        MetadataResponse.decode(frame, 9)
    assert tracemalloc.get_traced_memory()[1] - before < 20_000
