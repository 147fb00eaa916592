"""Walks a plan over bytes, in plain Python: the twin of native/, used where nothing was compiled.

Both raise the same errors at the same byte; tests/protocol run over both.
"""

from __future__ import annotations

import struct
from typing import Any, cast

from odradek.protocol.compile import FieldPlan, FieldType, Fresh, StructPlan
from odradek.protocol.errors import DecodeError, EncodeError
from odradek.protocol.limits import MAX_INLINE_RECORDS, DecodeLimits

Plan = StructPlan
Buffer = bytes | bytearray | memoryview

MAX_STRING = 0x7FFF
MAX_UVARINT = 0xFFFFFFFF
FIXED = {
    FieldType.INT8: struct.Struct(">b"),
    FieldType.INT16: struct.Struct(">h"),
    FieldType.UINT16: struct.Struct(">H"),
    FieldType.INT32: struct.Struct(">i"),
    FieldType.UINT32: struct.Struct(">I"),
    FieldType.INT64: struct.Struct(">q"),
    FieldType.FLOAT64: struct.Struct(">d"),
}


def prepare(plan: StructPlan) -> Plan:
    """What `decode` and `encode` take; here the plan itself."""
    return plan


def decode(plan: Plan, buffer: Buffer, start: int, limits: DecodeLimits) -> tuple[Any, int]:
    """The message that begins at `start`, and the position after it."""
    reader = _Reader(memoryview(buffer).cast("B"), start, limits)
    if not 0 <= start <= reader.end:
        raise DecodeError(f"there is no such byte in a buffer of {reader.end}", start)
    return reader.struct(plan), reader.position


def new_struct(plan: Plan) -> Any:
    """A message or nested struct with the schema's defaults in every field."""
    return plan.cls()


def encode(plan: Plan, message: object) -> bytes:
    """The message as bytes."""
    writer = _Writer()
    writer.struct(plan, message)
    return b"".join(writer.finish())


def encode_frame(header_plan: Plan, header: object, plan: Plan, message: object) -> list[Any]:
    """A frame, size first, as parts to send: bytes, and between them records fields as they were given.

    Records that are few and are bytes are copied: one buffer is cheaper to send than three.
    """
    writer = _Writer(keeps_records_apart=True)
    writer.out += bytes(4)
    writer.struct(header_plan, header)
    writer.struct(plan, message)
    parts = writer.finish()
    size = sum(map(len, parts)) - 4
    if size > 0x7FFFFFFF:
        raise EncodeError(f"a frame of {size} bytes is too long")
    parts[0] = size.to_bytes(4, "big") + parts[0][4:]
    return parts


class _Reader:
    def __init__(self, view: memoryview, start: int, limits: DecodeLimits) -> None:
        self.view = view
        self.position = start
        self.end = len(view)
        self.elements_left, self.unknown_tags_left = limits

    def advance(self, size: int) -> int:
        """Step over `size` bytes and return where they begin."""
        position = self.position
        if size > self.end - position:
            raise DecodeError(f"needs {size} bytes, {self.end - position} left", position)
        self.position = position + size
        return position

    def uvarint(self) -> int:
        start, value = self.position, 0
        for shift in range(0, 35, 7):
            byte = self.view[self.advance(1)]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > MAX_UVARINT:
                    break
                return value
        raise DecodeError("a varint of more than 32 bits", start)

    def struct(self, plan: StructPlan) -> Any:
        message: Any = object.__new__(plan.cls)
        for field in plan.fields:
            try:
                setattr(message, field.attribute, self.field(field))
            except DecodeError as error:
                error.enter(field.name)
                raise
        for field in (*plan.absent, *plan.tagged):
            setattr(message, field.attribute, fresh_default(field))
        if plan.is_flexible:
            self.tagged_fields(plan, message)
        return message

    def tagged_fields(self, plan: StructPlan, message: object) -> None:
        known = {field.tag: field for field in plan.tagged}
        previous = -1
        for _ in range(self.uvarint()):
            at = self.position
            tag, size = self.uvarint(), self.uvarint()
            if tag <= previous:
                raise DecodeError(f"tag {tag} comes after tag {previous}", at)
            previous = tag
            start = self.advance(size)
            if tag not in known:
                self.skip_unknown_tag(at)
                continue
            self.position = start
            try:
                setattr(message, known[tag].attribute, self.field(known[tag]))
                if self.position != start + size:
                    raise DecodeError(f"takes {self.position - start} bytes, said {size}", start)
            except DecodeError as error:
                error.enter(known[tag].name)
                raise

    def skip_unknown_tag(self, at: int) -> None:
        self.unknown_tags_left -= 1
        if self.unknown_tags_left < 0:
            raise DecodeError("too many unknown tagged fields", at)

    def field(self, field: FieldPlan) -> Any:
        if not field.is_array:
            return self.value(field)
        count = self.array_length(field)
        if count < 0:
            return None
        values = []
        for index in range(count):
            try:
                values.append(self.struct(field.struct) if field.struct else self.scalar(field, False))
            except DecodeError as error:
                error.enter(f"[{index}]")
                raise
        return values

    def array_length(self, field: FieldPlan) -> int:
        at = self.position
        count = self.length(field.is_compact, 4)
        if count < 0:
            if not field.is_nullable:
                raise DecodeError("null where null is not allowed", at)
            return -1
        if count > (self.end - self.position) // max(field.element_size, 1):
            raise DecodeError(f"{count} elements cannot fit into {self.end - self.position} bytes", at)
        self.elements_left -= count
        if self.elements_left < 0:
            raise DecodeError("too many array elements in one message", at)
        return count

    def length(self, is_compact: bool, width: int) -> int:
        """A length or count; -1 for null."""
        if is_compact:
            return self.uvarint() - 1
        at = self.position
        kind = FieldType.INT16 if width == 2 else FieldType.INT32
        value = cast("int", FIXED[kind].unpack_from(self.view, self.advance(width))[0])
        if value < -1:
            raise DecodeError(f"a length of {value}", at)
        return value

    def value(self, field: FieldPlan) -> Any:
        if field.struct is None:
            return self.scalar(field, field.is_nullable)
        if field.is_nullable:
            present = (
                self.uvarint()
                if field.tag >= 0
                else 1 + FIXED[FieldType.INT8].unpack_from(self.view, self.advance(1))[0]
            )
            if present <= 0:
                return None
        return self.struct(field.struct)

    def scalar(self, field: FieldPlan, is_nullable: bool) -> Any:
        kind = field.kind
        if kind in FIXED:
            reader = FIXED[kind]
            return reader.unpack_from(self.view, self.advance(reader.size))[0]
        if kind is FieldType.BOOL:
            return self.view[self.advance(1)] != 0
        if kind is FieldType.UUID:
            at = self.advance(16)
            return bytes(self.view[at : at + 16])
        return self.sized(kind, field.is_compact, is_nullable)

    def sized(self, kind: FieldType, is_compact: bool, is_nullable: bool) -> Any:
        at = self.position
        size = self.length(is_compact, 2 if kind is FieldType.STRING else 4)
        if size < 0:
            if not is_nullable:
                raise DecodeError("null where null is not allowed", at)
            return None
        if kind is FieldType.STRING and size > MAX_STRING:
            raise DecodeError(f"a string of {size} bytes", at)
        start = self.advance(size)
        view = self.view[start : start + size]
        if kind is FieldType.RECORDS:
            return view
        if kind is FieldType.BYTES:
            return bytes(view)
        try:
            return str(view, "utf-8")
        except UnicodeDecodeError as error:
            raise DecodeError("not UTF-8", start + error.start) from None


def fresh_default(field: FieldPlan) -> Any:
    """The default of a field, new where it can be changed."""
    if field.fresh is Fresh.LIST:
        return []
    if field.fresh is Fresh.STRUCT:
        return cast("StructPlan", field.struct).cls()
    return field.default


class _Writer:
    def __init__(self, keeps_records_apart: bool = False) -> None:
        self.out = bytearray()
        self.parts: list[Any] = []
        self.keeps_records_apart = keeps_records_apart

    def finish(self) -> list[Any]:
        self.parts.append(bytes(self.out))
        return self.parts

    def uvarint(self, value: int) -> None:
        while value >= 0x80:
            self.out.append(value & 0x7F | 0x80)
            value >>= 7
        self.out.append(value)

    def struct(self, plan: StructPlan, message: object) -> None:
        if not isinstance(message, plan.cls):
            raise EncodeError(f"needs a {plan.cls.__qualname__}, not {type(message).__name__}")
        if not plan.drops_absent:
            for field in plan.absent:
                if slot_value(message, field) != fresh_default(field):
                    raise entered(EncodeError("this version has no such field"), field.name)
        for field in plan.fields:
            self.named_field(field, message)
        if plan.is_flexible:
            self.tagged_fields(plan, message)

    def named_field(self, field: FieldPlan, message: object) -> None:
        try:
            self.field(field, slot_value(message, field))
        except EncodeError as error:
            error.enter(field.name)
            raise

    def tagged_fields(self, plan: StructPlan, message: object) -> None:
        present = [field for field in plan.tagged if slot_value(message, field) != fresh_default(field)]
        self.uvarint(len(present))
        for field in present:
            outer, self.out = self.out, bytearray()
            self.named_field(field, message)
            value, self.out = self.out, outer
            self.uvarint(field.tag)
            self.uvarint(len(value))
            self.out += value

    def field(self, field: FieldPlan, value: Any) -> None:
        if value is None:
            self.null(field)
        elif field.is_array:
            self.array(field, value)
        else:
            self.value(field, value)

    def null(self, field: FieldPlan) -> None:
        if not field.is_nullable:
            raise EncodeError("null where null is not allowed")
        if field.struct and not field.is_array:
            self.out += b"\0" if field.tag >= 0 else b"\xff"
        elif field.is_compact:
            self.out += b"\0"
        else:
            self.out += b"\xff\xff" if field.kind is FieldType.STRING and not field.is_array else b"\xff" * 4

    def array(self, field: FieldPlan, values: Any) -> None:
        if not isinstance(values, list | tuple):
            raise EncodeError(f"needs a list, not {type(values).__name__}")
        self.length(field.is_compact, len(values), 4)
        for index, value in enumerate(values):
            try:
                if value is None:
                    raise EncodeError("null where null is not allowed")
                if field.struct:
                    self.struct(field.struct, value)
                else:
                    self.scalar(field, value)
            except EncodeError as error:
                error.enter(f"[{index}]")
                raise

    def length(self, is_compact: bool, length: int, width: int) -> None:
        if length > 0x7FFFFFFF:
            raise EncodeError(f"a length of {length} is too much")
        if is_compact:
            self.uvarint(length + 1)
        else:
            self.out += length.to_bytes(width, "big")

    def value(self, field: FieldPlan, value: Any) -> None:
        if field.struct is None:
            self.scalar(field, value)
            return
        if field.is_nullable:
            self.out += b"\1"
        self.struct(field.struct, value)

    def scalar(self, field: FieldPlan, value: Any) -> None:
        kind = field.kind
        if kind in FIXED:
            self.number(kind, value)
        elif kind is FieldType.BOOL:
            self.out.append(bool(value))
        elif kind is FieldType.UUID:
            if not isinstance(value, bytes) or len(value) != 16:
                raise EncodeError("needs 16 bytes")
            self.out += value
        elif kind is FieldType.STRING:
            self.string(field, value)
        else:
            self.blob(field, value)

    def number(self, kind: FieldType, value: Any) -> None:
        if kind is not FieldType.FLOAT64 and not isinstance(value, int):
            raise EncodeError(f"needs an int, not {type(value).__name__}")
        try:
            self.out += FIXED[kind].pack(value)
        except (struct.error, OverflowError, TypeError):
            raise EncodeError(f"{value!r} does not fit {kind.name.lower()}") from None

    def string(self, field: FieldPlan, value: Any) -> None:
        if not isinstance(value, str):
            raise EncodeError(f"needs a str, not {type(value).__name__}")
        try:
            raw = value.encode()
        except UnicodeEncodeError:
            raise EncodeError("has half a surrogate pair") from None
        if len(raw) > MAX_STRING:
            raise EncodeError(f"a string of {len(raw)} bytes is too long")
        self.length(field.is_compact, len(raw), 2)
        self.out += raw

    def blob(self, field: FieldPlan, value: Any) -> None:
        if field.kind is FieldType.RECORDS and self.keeps_records_apart:
            self.length(field.is_compact, len(value), 4)
            if type(value) is bytes and len(value) <= MAX_INLINE_RECORDS:
                self.out += value
            elif len(value):
                self.parts += [bytes(self.out), value]
                self.out = bytearray()
            return
        try:
            view = memoryview(value).cast("B")
        except TypeError:
            raise EncodeError(f"needs bytes, not {type(value).__name__}") from None
        self.length(field.is_compact, len(view), 4)
        self.out += view


def slot_value(message: object, field: FieldPlan) -> Any:
    """The value of one field of a message that may have been built by hand."""
    try:
        return getattr(message, field.attribute)
    except AttributeError:
        raise EncodeError(f"{field.name} has no value") from None


def entered(error: EncodeError, name: str) -> EncodeError:
    """The error with one step of its path."""
    error.enter(name)
    return error
