from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker import handlers
from odradek.broker.requests.dispatch import handles, load_handler
from odradek.broker.requests.served_apis import CONTROL, SERVED, served_on
from odradek.protocol.api_key import ApiKey


def test_the_table_has_a_row_for_every_file_of_handlers() -> None:
    files = {path.stem for path in Path(handlers.__path__[0]).glob("*.py")}
    handled = {name for name in files if not name.startswith(("__", "short_"))}

    assert {api_key.name.lower() for api_key in SERVED} == handled


@pytest.mark.parametrize("api_key", SERVED, ids=lambda one: one.name)
def test_every_row_of_the_table_has_a_handler_of_these_versions(api_key: ApiKey) -> None:
    entry = load_handler(api_key)

    assert entry is not None
    assert entry.api_key is api_key
    assert entry.versions == SERVED[api_key]


def test_the_table_is_in_the_order_of_the_keys() -> None:
    assert list(SERVED) == sorted(SERVED)


def test_what_is_not_in_the_table_is_not_served() -> None:
    assert load_handler(ApiKey.DESCRIBE_DELEGATION_TOKEN) is None


def test_a_listener_for_clients_only_serves_no_control_requests() -> None:
    served = served_on(is_for_brokers=False)

    assert served.keys() | CONTROL == SERVED.keys()
    assert not served.keys() & CONTROL
    assert served_on(is_for_brokers=True) == SERVED


def test_a_handler_of_other_versions_than_the_table_has_is_refused() -> None:
    with pytest.raises(AssertionError, match="LEADER_AND_ISR"):
        handles(ApiKey.LEADER_AND_ISR, versions=(0, 7))(print)
