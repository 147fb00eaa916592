"""Makes bad bytes out of good ones: what a broken or hostile peer would send."""

from __future__ import annotations

from random import Random

# Lengths and counts that lie, as int16, int32 and varints.
LIES = (
    b"\xff\xff",
    b"\x7f\xff",
    b"\x80\x00",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\x00\x10\x00\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    b"\xff" * 10,
)


def mutate(seed: bytes, random: Random) -> bytes:
    """One to four random changes of a valid input."""
    changed = bytearray(seed)
    for _ in range(random.randint(1, 4)):
        random.choice(CHANGES)(changed, random)
    return bytes(changed)


def _place(changed: bytearray, random: Random) -> int:
    return random.randint(0, len(changed))


def _flip(changed: bytearray, random: Random) -> None:
    if changed:
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)


def _overwrite(changed: bytearray, random: Random) -> None:
    if changed:
        changed[random.randrange(len(changed))] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF))


def _lie(changed: bytearray, random: Random) -> None:
    at, lie = _place(changed, random), random.choice(LIES)
    changed[at : at + len(lie)] = lie


def _cut(changed: bytearray, random: Random) -> None:
    del changed[_place(changed, random) :]


def _remove(changed: bytearray, random: Random) -> None:
    at = _place(changed, random)
    del changed[at : at + random.randint(1, 8)]


def _insert(changed: bytearray, random: Random) -> None:
    at = _place(changed, random)
    changed[at:at] = random.randbytes(random.randint(1, 8))


def _repeat(changed: bytearray, random: Random) -> None:
    at = _place(changed, random)
    piece = changed[at : at + random.randint(1, 32)]
    changed[at:at] = piece * random.randint(1, 50)


CHANGES = (_flip, _flip, _overwrite, _overwrite, _lie, _lie, _cut, _remove, _insert, _repeat)
