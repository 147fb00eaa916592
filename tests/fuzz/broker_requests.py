"""Requests for every API that a broker serves: valid ones with values that mean something, and mutated."""

from __future__ import annotations

import struct
import time
from random import Random
from typing import Any

from broker.wire import a_batch, request_frame
from fuzz.mutations import mutate
from odradek.broker.requests.served_apis import SERVED
from odradek.protocol.api import request_class
from odradek.protocol.api_key import ApiKey
from odradek.protocol.schema import FieldSpec
from odradek.records.compression import Codec

TOPICS = ("orders", "compacted", "small")
STRINGS = (
    *TOPICS,
    "new",
    "../x",
    "",
    "größe",
    "0",
    "retention.ms",
    "cleanup.policy",
    "compact",
    "1000",
    "-1",
)
NUMBERS = (-2, -1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 100, 1000, 2**31 - 1, -(2**31))
SPECIAL_TIMES_MS = (-6, -5, -4, -3, -2, -1, 0)
MAX_NUMBERS = {"int8": 2**7, "int16": 2**15, "int32": 2**31, "uint16": 2**16, "uint32": 2**32}
HEADER_BYTES = 4


# A valid one changes which partitions a broker leads, whoever sends it.
CONTROL = frozenset(
    {ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN}
)


def choices(*, control: bool) -> list[tuple[ApiKey, int]]:
    """Every API and version that is served: control requests, or all others."""
    return [
        (api_key, version)
        for api_key, (low, high) in sorted(SERVED.items())
        for version in range(low, high + 1)
        if (api_key in CONTROL) is control
    ]


class RequestMaker:
    """Makes frames, the same ones for the same seed; `topic_ids` are those that the broker knows."""

    def __init__(self, random: Random, topic_ids: list[bytes]) -> None:
        self._random = random
        self._topic_ids = topic_ids

    def valid(self, api_key: ApiKey, version: int) -> bytes:
        """A request that can be read, whatever it may mean."""
        cls = request_class(api_key)
        body = self._fill(cls, cls.SPEC.fields, version)
        return request_frame(api_key, version, body, self._random.randrange(2**31))

    def mutated(self, api_key: ApiKey, version: int) -> bytes:
        """The same with bytes changed; its size is right, and most often its API is, too."""
        frame = self.valid(api_key, version)[HEADER_BYTES:]
        kept = 8 if self._random.random() < 0.9 else 0
        changed = frame[:kept] + mutate(frame[kept:], self._random)
        return struct.pack(">i", len(changed)) + changed

    def _fill(self, cls: Any, fields: tuple[FieldSpec, ...], version: int) -> Any:
        return cls(
            **{
                field.attribute: self._value(cls, field, version)
                for field in fields
                if version in field.versions and self._random.random() < 0.95
            }
        )

    def _value(self, cls: Any, field: FieldSpec, version: int) -> Any:
        if version in field.nullable and self._random.random() < 0.1:
            return None
        if field.is_array:
            count = self._random.choice((0, 1, 1, 1, 2, 3))
            return [self._one(cls, field, version) for _ in range(count)]
        return self._one(cls, field, version)

    def _one(self, cls: Any, field: FieldSpec, version: int) -> Any:
        random = self._random
        if field.fields:
            return self._fill(getattr(cls, field.class_name), field.fields, version)
        match field.type:
            case "bool":
                return random.random() < 0.5
            case "float64":
                return random.choice((0.0, 1.5, float("nan"), float("inf")))
            case "string":
                return random.choice(TOPICS) if "topic" in field.attribute else random.choice(STRINGS)
            case "bytes":
                return random.randbytes(random.randint(0, 40))
            case "records":
                return self._records()
            case "uuid":
                return random.choice((*self._topic_ids, bytes(16), random.randbytes(16)))
            case _:
                return self._number(field)

    def _number(self, field: FieldSpec) -> int:
        if "timestamp" in field.attribute and self._random.random() < 0.5:
            return self._random.choice((*SPECIAL_TIMES_MS, time.time_ns() // 1_000_000))
        number = self._random.choice(NUMBERS)
        if "timeout" in field.attribute or "max_wait" in field.attribute:
            number = min(number, 100)
        limit = MAX_NUMBERS.get(field.type, 2**63)
        return number if -limit <= number < limit and (number >= 0 or field.type[0] != "u") else 0

    def _records(self) -> bytes:
        random = self._random
        values = [random.randbytes(random.randint(0, 50)) for _ in range(random.randint(1, 4))]
        fields = {}
        if random.random() < 0.3:
            fields = {
                "producer_id": random.choice((1, 2, 1000)),
                "producer_epoch": random.choice((0, 1)),
                "base_sequence": random.choice((0, 1, 2, 4, 8)),
            }
        batch = a_batch(*values, codec=random.choice(list(Codec)), key=random.choice((None, b"k")), **fields)
        return mutate(batch, random) if random.random() < 0.3 else batch
