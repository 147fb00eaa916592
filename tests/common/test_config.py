"""Settings: text to value and back as Java does it, and refusals in Kafka's words."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.common.config import (
    InvalidValue,
    Kind,
    Setting,
    UpdateMode,
    Valid,
    Value,
    at_least,
    between,
    each_of,
    setting,
)


def a_setting(kind: Kind, **facts: object) -> Setting:
    return Setting("some.key", kind, None, "", **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Kind.BOOLEAN, " TRUE ", True),
        (Kind.INT, "+5", 5),
        (Kind.LONG, "-9223372036854775808", -(2**63)),
        (Kind.SHORT, "32767", 32767),
        (Kind.DOUBLE, "1e3", 1000.0),
        (Kind.LIST, " a ,b,,a", ("a", "b")),
        (Kind.LIST, "", ()),
        (Kind.STRING, " x ", "x"),
    ],
)
def test_text_becomes_a_value(kind: Kind, text: str, value: Value) -> None:
    assert a_setting(kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind.INT, "2147483648"),
        (Kind.SHORT, "32768"),
        (Kind.LONG, "9223372036854775808"),
        (Kind.INT, "1_000"),
        (Kind.INT, "1.0"),
        (Kind.INT, ""),
        (Kind.INT, "٣"),
        (Kind.DOUBLE, "nan"),
        (Kind.DOUBLE, "inf"),
        (Kind.BOOLEAN, "1"),
    ],
)
def test_text_that_means_no_value_is_refused(kind: Kind, text: str) -> None:
    with pytest.raises(InvalidValue, match=r"for configuration some\.key"):
        a_setting(kind).parse(text)


def test_bounds_are_reported() -> None:
    with pytest.raises(
        InvalidValue, match=r"Invalid value 4 for configuration some\.key: Value must be at least 5"
    ):
        a_setting(Kind.INT, valid=at_least(5)).parse("4")
    with pytest.raises(InvalidValue, match="Value must be no more than 9"):
        a_setting(Kind.INT, valid=between(5, 9)).parse("10")
    with pytest.raises(InvalidValue, match=r"Invalid value c for .* one of: a, b"):
        a_setting(Kind.LIST, valid=each_of("a", "b")).parse("a,c")


def test_a_password_is_never_shown() -> None:
    is_long = Valid(lambda text: len(text) > 100, "longer than 100 characters")

    with pytest.raises(InvalidValue, match="must be longer than 100 characters") as refused:
        a_setting(Kind.PASSWORD, valid=is_long).parse("hunter2")

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.5"),
        (1e7, "1.0E7"),
        (1e-4, "1.0E-4"),
        (sys.float_info.max, "1.7976931348623157E308"),
        (0.0, "0.0"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert a_setting(Kind.DOUBLE).print(value) == text


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_read_back_as_it_was(value: float) -> None:
    one = a_setting(Kind.DOUBLE)

    assert one.parse(str(one.print(value))) == value


def test_what_is_not_dynamic_is_read_only() -> None:
    field = setting("some.key", Kind.INT, 1, "", is_dynamic=False)

    assert field.metadata["setting"].update_mode is UpdateMode.READ_ONLY
    assert not field.metadata["setting"].is_dynamic
