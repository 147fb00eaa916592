"""Every message as a class, made from its schema at first use: `messages.FetchRequest`.

`messages.pyi` has the same names for a type checker and is generated from the same schemas.
"""

from __future__ import annotations

from odradek.protocol import schema
from odradek.protocol.structs import Message, make_message


def __getattr__(name: str) -> type[Message]:
    try:
        spec = schema.load(name)
    except KeyError:
        raise AttributeError(f"there is no message named {name}") from None
    # Another thread may have made it meanwhile; all must have the same class.
    made: type[Message] = globals().setdefault(name, make_message(spec, __name__))
    return made


def __dir__() -> list[str]:
    return sorted(schema.load_all())
