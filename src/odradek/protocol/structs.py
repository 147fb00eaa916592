"""Makes the message classes: one slotted class per message and per nested struct, for all versions.

A nested struct's class hangs on its parent under the field's name: `FetchRequest.Topics.Partitions`.
`messages.pyi` shows all of them to a type checker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from odradek.protocol import codec
from odradek.protocol.compile import StructPlan, compile_plan
from odradek.protocol.errors import UnsupportedVersion
from odradek.protocol.limits import DEFAULT_LIMITS, DecodeLimits
from odradek.protocol.schema import FieldSpec, MessageSpec

_UNSET: Any = object()


class Struct:
    """Named values; equal when all of them are."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__qualname__}({values})"


class Message(Struct):
    """A struct that is a whole message: it knows its schema and goes to and from bytes."""

    __slots__ = ()
    SPEC: ClassVar[MessageSpec]
    _plans: ClassVar[dict[int, codec.Plan]]

    @classmethod
    def plan(cls, version: int) -> codec.Plan:
        """How this version is laid out; made at first use."""
        plan = cls._plans.get(version)
        if plan is None:
            spec = cls.SPEC
            if version not in spec.versions:
                raise UnsupportedVersion(spec.name, version, *spec.versions)
            plan = cls._plans[version] = codec.prepare(compile_plan(cls, spec, version))
        return plan

    @classmethod
    def decode(
        cls,
        buffer: bytes | bytearray | memoryview,
        version: int,
        start: int = 0,
        limits: DecodeLimits = DEFAULT_LIMITS,
    ) -> tuple[Self, int]:
        """The message that begins at `start`, and the position after it.

        Records fields are views of `buffer`; everything else is copied out of it.
        """
        return codec.decode(cls._plans.get(version) or cls.plan(version), buffer, start, limits)

    def encode(self, version: int) -> bytes:
        """The message as bytes.

        A value in a field that this version lacks is an error in a request (the caller would not get what
        it asked for) and dropped in a response (the client cannot read it anyway).
        """
        return codec.encode(self._plans.get(version) or self.plan(version), self)


def default_plan(message: type[Message], *path: str) -> codec.Plan:
    """The plan with which `codec.new_struct` makes a message, or the struct under these attributes of it.

    That is several times faster than calling the class, which handlers on hot paths need.
    """
    plan = compile_plan(message, message.SPEC, message.SPEC.versions.high)
    for attribute in path:
        plan = _nested_plan(plan, attribute)
    return codec.prepare(plan)


def _nested_plan(plan: StructPlan, attribute: str) -> StructPlan:
    for field in (*plan.fields, *plan.tagged, *plan.absent):
        if field.attribute == attribute and field.struct is not None:
            return field.struct
    raise KeyError(f"{plan.cls.__qualname__} has no struct named {attribute}")


def make_message(spec: MessageSpec, module: str) -> type[Message]:
    """The class of one message."""
    namespace = {"SPEC": spec, "_plans": {}, "__module__": module}
    made = _make_class(Message, spec.name, spec.fields, namespace)
    assert issubclass(made, Message)
    return made


def _make_class(
    base: type[Struct], qualified_name: str, fields: Sequence[FieldSpec], namespace: dict[str, Any]
) -> type[Struct]:
    module = {"__module__": namespace["__module__"]}
    nested = {
        field.class_name: _make_class(
            Struct, f"{qualified_name}.{field.class_name}", field.fields, dict(module)
        )
        for field in fields
        if field.fields
    }
    namespace |= nested
    namespace |= {
        "__slots__": tuple(field.attribute for field in fields),
        "__qualname__": qualified_name,
        "__init__": _make_init(fields, nested),
    }
    return type(qualified_name.rpartition(".")[2], (base,), namespace)


def _make_init(fields: Sequence[FieldSpec], nested: dict[str, type[Struct]]) -> Any:
    """A keyword-only __init__ with the schema's defaults; source text, because it runs per object."""
    names: dict[str, Any] = {"_UNSET": _UNSET}
    parameters, body = [], []
    for field in fields:
        name = field.attribute
        fresh = _fresh_default(field)
        if fresh is None:
            names[f"_{name}"] = field.default
            parameters.append(f"{name}=_{name}")
            body.append(f"    self.{name} = {name}")
        else:
            if field.fields and not field.is_array:
                names[field.class_name] = nested[field.class_name]
            parameters.append(f"{name}=_UNSET")
            body.append(f"    self.{name} = {fresh} if {name} is _UNSET else {name}")
    head = f"def __init__(self{', *, ' if parameters else ''}{', '.join(parameters)}):"
    exec("\n".join([head, *(body or ["    pass"])]), names)
    return names["__init__"]


def _fresh_default(field: FieldSpec) -> str | None:
    """An expression for a default that must be new for each object; None for an immutable one."""
    if field.default_is_null:
        return None
    if field.is_array:
        return "[]"
    return f"{field.class_name}()" if field.fields else None
