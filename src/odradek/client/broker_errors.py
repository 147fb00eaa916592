"""One exception class for each error code, made at first use: `broker_errors.TopicAlreadyExists`.

`broker_errors.pyi` has the same names for a type checker; tools/generate.py writes it from the error codes.
"""

from __future__ import annotations

from odradek.client.errors import BrokerError
from odradek.common.error_codes import ErrorCode


def class_name(code: ErrorCode) -> str:
    """TOPIC_ALREADY_EXISTS is called TopicAlreadyExists."""
    return "".join(word.capitalize() for word in code.name.split("_"))


_CODES = {class_name(code): code for code in ErrorCode if code is not ErrorCode.NONE}


def __getattr__(name: str) -> type[BrokerError]:
    code = _CODES.get(name)
    if code is None:
        raise AttributeError(f"there is no broker error named {name}")
    attributes = {"error_code": code, "__doc__": f"A broker answered {code.name}.", "__module__": __name__}
    made = globals()[name] = type(name, (BrokerError,), attributes)
    return made


def __dir__() -> list[str]:
    return sorted([*_CODES, "broker_error", "check"])


def broker_error(code: int, message: str | None = None) -> BrokerError:
    """The exception for a code on the wire, also for one that only a later Kafka has."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return BrokerError(f"error code {code}" + (f": {message}" if message else ""))
    made: type[BrokerError] = globals().get(class_name(known)) or __getattr__(class_name(known))
    return made(message or "")


def check(code: int, message: str | None = None) -> None:
    """Raise the error that a code stands for, if it is one."""
    if code != ErrorCode.NONE:
        raise broker_error(code, message)
