"""The two walkers, compiled and interpreted, behind one fixture: every test of a format runs over both."""

from __future__ import annotations

from types import ModuleType

import pytest

from odradek.protocol import native, walker
from odradek.protocol.compile import compile_plan
from odradek.protocol.limits import DEFAULT_LIMITS, DecodeLimits
from odradek.protocol.structs import Message


class Walker:
    """One implementation of decode and encode."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.plans: dict[tuple[type[Message], int], object] = {}

    def plan(self, cls: type[Message], version: int) -> object:
        key = (cls, version)
        if key not in self.plans:
            self.plans[key] = self.module.prepare(compile_plan(cls, cls.SPEC, version))
        return self.plans[key]

    def decode(
        self,
        cls: type[Message],
        buffer: bytes | bytearray | memoryview,
        version: int,
        start: int = 0,
        limits: DecodeLimits = DEFAULT_LIMITS,
    ) -> tuple[Message, int]:
        return self.module.decode(self.plan(cls, version), buffer, start, limits)

    def encode(self, message: Message, version: int) -> bytes:
        return self.module.encode(self.plan(type(message), version), message)

    def encode_frame(self, header: Message, header_version: int, message: Message, version: int) -> list:
        header_plan = self.plan(type(header), header_version)
        return self.module.encode_frame(header_plan, header, self.plan(type(message), version), message)


WALKERS = {"compiled": Walker(native), "interpreted": Walker(walker)}


@pytest.fixture(params=list(WALKERS))
def walk(request: pytest.FixtureRequest) -> Walker:
    return WALKERS[request.param]
