"""The loops of compaction over records: hash keys, store their last offsets, choose the survivors.

Compiled by Cython, or interpreted as is. They work on runs of batches in several passes, so that the second
one, which mostly waits for memory, does nothing else:

    digest_batches      walk the records, hash their keys into a table
    put_offsets         … then note each key's last offset in the map,
    choose_survivors    … or ask the map which records survive
    write_survivors     … and copy those (copy_kernels.py)

Nothing outside of the given bounds is ever read, whatever the bytes are; faults are returned, never raised.
The loops run without the interpreter lock. Only the branches on `cython.compiled` differ between compiled
and interpreted code.

The map is an array of entries of three uint64: the key's hash in two, then its last offset plus one. 0
there means empty. Collisions go to the next place.

The hash is SipHash-2-4 with 128 bits and a random secret per map: two keys that collide would cost a record,
and without the secret nobody can construct colliding keys. (Kafka's MD5 is ten times slower, and colliding
keys can be constructed.)
"""

from __future__ import annotations

import cython

from odradek.log.cleaner.filter.layout import ROW_WIDTH, RecordKind, Row, Verdict
from odradek.records.kernels.layout import BATCH_ROW_WIDTH, BatchColumn, Problem

IS_COMPILED = cython.compiled

# C integers by kernels.pxd, so that the loops need no Python object.
_START = Row.START
_REST = Row.REST
_END = Row.END
_OFFSET = Row.OFFSET
_TIMESTAMP_DELTA = Row.TIMESTAMP_DELTA
_KIND = Row.KIND
_SURVIVES = Row.SURVIVES
_ROW_WIDTH = ROW_WIDTH

_NO_KEY = RecordKind.NO_KEY
_VALUE = RecordKind.VALUE
_TOMBSTONE = RecordKind.TOMBSTONE
_EXPIRED_TOMBSTONE = RecordKind.EXPIRED_TOMBSTONE

_DISCARD = Verdict.DISCARD

_BATCH_WIDTH = BATCH_ROW_WIDTH
_BATCH_POSITION = BatchColumn.POSITION
_BATCH_BASE_OFFSET = BatchColumn.BASE_OFFSET
_BATCH_SIZE = BatchColumn.SIZE_IN_BYTES
_BATCH_ATTRIBUTES = BatchColumn.ATTRIBUTES
_BATCH_LAST_OFFSET = BatchColumn.LAST_OFFSET
_BATCH_BASE_TIMESTAMP = BatchColumn.BASE_TIMESTAMP_MS
_BATCH_RECORD_COUNT = BatchColumn.RECORD_COUNT

_BAD_LENGTH = Problem.RECORD_LENGTH
_BAD_FIELD = Problem.TIMESTAMP_DELTA
_BAD_KEY = Problem.KEY
_BAD_VALUE = Problem.VALUE
_TOO_FEW = Problem.TOO_FEW
_BYTES_LEFT = Problem.BYTES_LEFT
_WRONG_OFFSET = Problem.WRONG_OFFSET

# The letters that SipHash begins with; the second one is changed for the variant of 128 bits.
_A = 0x736F6D6570736575
_B = 0x646F72616E646F6D ^ 0xEE
_C = 0x6C7967656E657261
_D = 0x7465646279746573


# Numbers. As in records/kernels/record_check.py, and not shared: a memoryview passed to a function of
# another module is copied.


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _after_varint(
    buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Where the varint at `position` ends; -1 if it is cut off or too long."""
    limit: cython.Py_ssize_t = position + 10 if end - position > 10 else end
    while position < limit:
        if buffer[position] < 0x80:
            return position + 1
        position += 1
    return -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint(
    buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, after: cython.Py_ssize_t
) -> cython.longlong:
    """The number between two positions that `_after_varint` has checked."""
    raw: cython.ulonglong = buffer[position] & 0x7F
    byte: cython.ulonglong
    i: cython.Py_ssize_t
    for i in range(1, after - position):
        byte = buffer[position + i] & 0x7F
        raw |= byte << (7 * i)
    if not cython.compiled:
        raw %= 2**64
    return cython.cast(cython.longlong, (raw >> 1) ^ -(raw & 1))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _wrapping_sum(base: cython.longlong, delta: cython.longlong) -> cython.longlong:
    """A sum of 64 bits that wraps, as Java's does: both numbers come from outside."""
    if cython.compiled:
        total = cython.cast(
            cython.longlong, cython.cast(cython.ulonglong, base) + cython.cast(cython.ulonglong, delta)
        )
    else:
        total = (base + delta + 2**63) % 2**64 - 2**63
    return total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _sum(a: cython.ulonglong, b: cython.ulonglong) -> cython.ulonglong:
    """Modulo 2**64."""
    if cython.compiled:
        total = a + b
    else:
        total = (a + b) % 2**64
    return total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _rotated(word: cython.ulonglong, bits: cython.int) -> cython.ulonglong:
    """Rotated to the left."""
    if cython.compiled:
        turned = (word << bits) | (word >> (64 - bits))
    else:
        turned = ((word << bits) | (word >> (64 - bits))) % 2**64
    return turned


# The hash of a key.


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _word(
    buffer: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> cython.ulonglong:
    """The little-endian number of `size` bytes at `position`, at most eight."""
    word: cython.ulonglong = 0
    byte: cython.ulonglong
    i: cython.Py_ssize_t
    if cython.compiled and size == 8:
        # All at once: the compiler makes one load of it.
        return (
            cython.cast(cython.ulonglong, buffer[position])
            | cython.cast(cython.ulonglong, buffer[position + 1]) << 8
            | cython.cast(cython.ulonglong, buffer[position + 2]) << 16
            | cython.cast(cython.ulonglong, buffer[position + 3]) << 24
            | cython.cast(cython.ulonglong, buffer[position + 4]) << 32
            | cython.cast(cython.ulonglong, buffer[position + 5]) << 40
            | cython.cast(cython.ulonglong, buffer[position + 6]) << 48
            | cython.cast(cython.ulonglong, buffer[position + 7]) << 56
        )
    for i in range(size):
        byte = buffer[position + i]
        word |= byte << (8 * i)
    return word


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _hash(
    buffer: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    length: cython.Py_ssize_t,
    secret_low: cython.ulonglong,
    secret_high: cython.ulonglong,
    digests: cython.ulonglong[::1],
    at: cython.Py_ssize_t,
) -> cython.void:
    """SipHash-2-4 of the key into digests[at] and digests[at + 1]."""
    a: cython.ulonglong = secret_low ^ _A
    b: cython.ulonglong = secret_high ^ _B
    c: cython.ulonglong = secret_low ^ _C
    d: cython.ulonglong = secret_high ^ _D
    words: cython.Py_ssize_t = length // 8
    step: cython.Py_ssize_t
    word: cython.ulonglong = 0
    _round: cython.int
    rounds: cython.int
    # Every full word and the last one with the length are mixed in, then come two steps that only mix.
    for step in range(words + 3):
        rounds = 2
        if step < words:
            word = _word(buffer, position + 8 * step, 8)
            d ^= word
        elif step == words:
            word = _word(buffer, position + 8 * words, length - 8 * words)
            word |= cython.cast(cython.ulonglong, length & 0xFF) << 56
            d ^= word
        elif step == words + 1:
            c ^= 0xEE
            rounds = 4
        else:
            b ^= 0xDD
            rounds = 4
        for _round in range(rounds):
            a = _sum(a, b)
            c = _sum(c, d)
            b = _rotated(b, 13) ^ a
            d = _rotated(d, 16) ^ c
            a = _rotated(a, 32)
            c = _sum(c, b)
            a = _sum(a, d)
            b = _rotated(b, 17) ^ c
            d = _rotated(d, 21) ^ a
            c = _rotated(c, 32)
        if step <= words:
            a ^= word
        else:
            digests[at + step - words - 1] = a ^ b ^ c ^ d


def siphash(
    key: cython.const[cython.uchar][::1], secret_low: cython.ulonglong, secret_high: cython.ulonglong
):
    """The hash of one key, as two numbers of 64 bits."""
    digests = memoryview(bytearray(16)).cast("Q")
    _hash(key, 0, len(key), secret_low, secret_high, digests, 0)
    return digests[0], digests[1]


# Records into rows.


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _digest_key_and_value(
    buffer: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    record_end: cython.Py_ssize_t,
    tombstones_expired: cython.bint,
    secret_low: cython.ulonglong,
    secret_high: cython.ulonglong,
    rows: cython.longlong[::1],
    digests: cython.ulonglong[::1],
    row: cython.Py_ssize_t,
) -> cython.int:
    """Note the digest of the key at `position`, and what kind of record the value makes of it; as _digest."""
    kind: cython.int = _NO_KEY
    after: cython.Py_ssize_t = _after_varint(buffer, position, record_end)
    length: cython.longlong = _varint(buffer, position, after) if after > 0 else -2
    if length < -1 or length > record_end - after:
        rows[0] = position
        return _BAD_KEY
    if length >= 0:
        _hash(buffer, after, length, secret_low, secret_high, digests, 2 * row)
        kind = _VALUE
        after += length
    position = after
    after = _after_varint(buffer, position, record_end)
    length = _varint(buffer, position, after) if after > 0 else -2
    if length < -1 or length > record_end - after:
        rows[0] = position
        return _BAD_VALUE
    if length < 0 and kind == _VALUE:
        kind = _EXPIRED_TOMBSTONE if tombstones_expired else _TOMBSTONE
    rows[row * _ROW_WIDTH + _KIND] = kind
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _digest(
    buffer: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    base_offset: cython.longlong,
    tombstones_expired: cython.bint,
    secret_low: cython.ulonglong,
    secret_high: cython.ulonglong,
    rows: cython.longlong[::1],
    digests: cython.ulonglong[::1],
    row: cython.Py_ssize_t,
) -> cython.int:
    """Fill rows and digests, from number `row` on, from the records of `buffer[start:end]`.

    Returns the problem, or 0. After a problem rows[0] is its position.
    """
    position: cython.Py_ssize_t = start
    after: cython.Py_ssize_t
    record_end: cython.Py_ssize_t
    length: cython.longlong
    last_delta: cython.longlong = -1
    offset_delta: cython.longlong
    problem: cython.int
    at: cython.Py_ssize_t
    _i: cython.longlong
    if count < 0 or count > (end - start) // 7:
        rows[0] = start
        return _TOO_FEW
    for _i in range(count):
        at = row * _ROW_WIDTH
        rows[at + _START] = position
        after = _after_varint(buffer, position, end)
        length = _varint(buffer, position, after) if after > 0 else -1
        if length < 6 or length > end - after:
            rows[0] = position
            return _BAD_LENGTH
        record_end = after + length
        rows[at + _END] = record_end

        position = after + 1  # the attributes, which are unused
        after = _after_varint(buffer, position, record_end)
        if after < 0:
            rows[0] = position
            return _BAD_FIELD
        rows[at + _TIMESTAMP_DELTA] = _varint(buffer, position, after)
        rows[at + _REST] = position = after
        after = _after_varint(buffer, position, record_end)
        offset_delta = _varint(buffer, position, after) if after > 0 else -1
        if offset_delta <= last_delta:
            rows[0] = position
            return _WRONG_OFFSET
        last_delta = offset_delta
        rows[at + _OFFSET] = _wrapping_sum(base_offset, offset_delta)

        problem = _digest_key_and_value(
            buffer, after, record_end, tombstones_expired, secret_low, secret_high, rows, digests, row
        )
        if problem != 0:
            return problem
        rows[at + _SURVIVES] = 0
        position = record_end
        row += 1
    if position != end:
        rows[0] = position
        return _BYTES_LEFT
    return 0


def digest_records(
    buffer: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
    base_offset: cython.longlong,
    tombstones_expired: cython.bint,
    secret_low: cython.ulonglong,
    secret_high: cython.ulonglong,
    rows: cython.longlong[::1],
    digests: cython.ulonglong[::1],
):
    """Rows and digests for the records of one batch, which fill `buffer[start:end]`; (problem, position)."""
    problem: cython.int
    _check_bounds(len(buffer), start, end)
    _check_bounds(len(rows), 0, ((end - start) // 7 + 1) * _ROW_WIDTH)
    _check_bounds(len(digests), 0, ((end - start) // 7 + 1) * 2)
    with cython.nogil:
        problem = _digest(
            buffer,
            start,
            end,
            count,
            base_offset,
            tombstones_expired,
            secret_low,
            secret_high,
            rows,
            digests,
            0,
        )
    return problem, rows[0]


def digest_batches(
    buffer: cython.const[cython.uchar][::1],
    batches: cython.longlong[::1],
    first: cython.Py_ssize_t,
    stop: cython.Py_ssize_t,
    verdicts: cython.const[cython.uchar][::1],
    now_ms: cython.longlong,
    secret_low: cython.ulonglong,
    secret_high: cython.ulonglong,
    rows: cython.longlong[::1],
    digests: cython.ulonglong[::1],
):
    """Rows and digests for the batches [first, stop) of a scan of `buffer`, but for those to be discarded.

    Returns (rows, problem, position, batch). A tombstone is expired when its batch has a delete horizon
    that is not after `now_ms`.
    """
    batch: cython.Py_ssize_t = first
    at: cython.Py_ssize_t
    position: cython.Py_ssize_t
    count: cython.longlong
    row: cython.Py_ssize_t = 0
    problem: cython.int = 0
    has_expired: cython.bint
    _check_bounds(len(batches), 0, stop * _BATCH_WIDTH)
    _check_bounds(len(verdicts), first, stop)
    _check_bounds(len(rows), 0, (len(buffer) // 7 + 1) * _ROW_WIDTH)
    _check_bounds(len(digests), 0, (len(buffer) // 7 + 1) * 2)
    with cython.nogil:
        while batch < stop:
            at = batch * _BATCH_WIDTH
            if verdicts[batch] & _DISCARD == 0:
                position = batches[at + _BATCH_POSITION]
                count = batches[at + _BATCH_RECORD_COUNT]
                has_expired = (
                    batches[at + _BATCH_ATTRIBUTES] & 0x40 != 0
                    and batches[at + _BATCH_BASE_TIMESTAMP] <= now_ms
                )
                problem = _digest(
                    buffer,
                    position + 61,
                    position + batches[at + _BATCH_SIZE],
                    count,
                    batches[at + _BATCH_BASE_OFFSET],
                    has_expired,
                    secret_low,
                    secret_high,
                    rows,
                    digests,
                    row,
                )
                if problem != 0:
                    break
                row += count
                if count > 0 and rows[(row - 1) * _ROW_WIDTH + _OFFSET] > batches[at + _BATCH_LAST_OFFSET]:
                    problem = _WRONG_OFFSET
                    rows[0] = position
                    break
            batch += 1
    return row, problem, rows[0], batch


@cython.cfunc
def _check_bounds(size: cython.Py_ssize_t, start: cython.Py_ssize_t, end: cython.Py_ssize_t):
    """IndexError for wrong arguments; faults in the bytes are returned."""
    if not 0 <= start <= end <= size:
        raise IndexError(f"{start}:{end} is not within {size}")


# The map.


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _find(
    entries: cython.ulonglong[::1],
    slots: cython.ulonglong,
    low: cython.ulonglong,
    high: cython.ulonglong,
) -> cython.Py_ssize_t:
    """Where a key's entry begins, or the empty one that it may have; the map is never full."""
    slot: cython.ulonglong = ((high >> 32) * slots) >> 32
    at: cython.Py_ssize_t = slot * 3
    while entries[at + 2] != 0 and (entries[at] != low or entries[at + 1] != high):
        slot += 1
        at += 3
        if slot == slots:
            slot = 0
            at = 0
    return at


def put_offsets(
    entries: cython.ulonglong[::1],
    slots: cython.ulonglong,
    size: cython.Py_ssize_t,
    max_size: cython.Py_ssize_t,
    rows: cython.longlong[::1],
    digests: cython.ulonglong[::1],
    count: cython.Py_ssize_t,
    start_offset: cython.longlong,
):
    """Store the offsets of the first `count` rows, from `start_offset` on; (rows done, entries in the map).

    Fewer rows are done when the next key is new and the map already has `max_size` entries. Offsets grow from
    row to row, so the last one of a key stays.
    """
    row: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t
    offset: cython.longlong
    _check_bounds(len(entries), 0, slots * 3)
    _check_bounds(len(rows), 0, count * _ROW_WIDTH)
    _check_bounds(len(digests), 0, count * 2)
    if max_size >= cython.cast(cython.Py_ssize_t, slots):
        raise IndexError(f"a map of {slots} places holds less than {max_size} entries")
    with cython.nogil:
        while row < count:
            offset = rows[row * _ROW_WIDTH + _OFFSET]
            if offset >= start_offset and rows[row * _ROW_WIDTH + _KIND] != _NO_KEY:
                at = _find(entries, slots, digests[2 * row], digests[2 * row + 1])
                if entries[at + 2] == 0:
                    if size >= max_size:
                        break
                    size += 1
                    entries[at] = digests[2 * row]
                    entries[at + 1] = digests[2 * row + 1]
                entries[at + 2] = cython.cast(cython.ulonglong, offset) + 1
            row += 1
    return row, size


def find_offset(
    entries: cython.ulonglong[::1],
    slots: cython.ulonglong,
    digest_low: cython.ulonglong,
    digest_high: cython.ulonglong,
):
    """The last offset of a key, or -1."""
    _check_bounds(len(entries), 0, slots * 3)
    found: cython.longlong = entries[_find(entries, slots, digest_low, digest_high) + 2]
    return found - 1


def choose_survivors(
    entries: cython.ulonglong[::1],
    slots: cython.ulonglong,
    rows: cython.longlong[::1],
    digests: cython.ulonglong[::1],
    count: cython.Py_ssize_t,
    latest_offset: cython.longlong,
):
    """Mark the rows that survive; the number of records removed because they have no key.

    The map has nothing beyond `latest_offset`: all records there survive.
    """
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    kind: cython.int
    offset: cython.longlong
    last_offset: cython.longlong
    without_key: cython.Py_ssize_t = 0
    _check_bounds(len(entries), 0, slots * 3)
    _check_bounds(len(rows), 0, count * _ROW_WIDTH)
    _check_bounds(len(digests), 0, count * 2)
    with cython.nogil:
        for row in range(count):
            at = row * _ROW_WIDTH
            offset = rows[at + _OFFSET]
            kind = rows[at + _KIND]
            if offset > latest_offset:
                rows[at + _SURVIVES] = 1
            elif kind == _NO_KEY:
                without_key += 1
            else:
                last_offset = entries[_find(entries, slots, digests[2 * row], digests[2 * row + 1]) + 2]
                rows[at + _SURVIVES] = offset + 1 >= last_offset and kind != _EXPIRED_TOMBSTONE
    return without_key
