"""Store URLs."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.common.errors import ConfigError
from odradek.coordination.errors import StoreUnavailable
from odradek.coordination.urls import SqliteUrl, ZooKeeperUrl, open_store, parse_url


def test_a_path_names_the_embedded_store() -> None:
    assert parse_url("sqlite:data/store.db") == SqliteUrl(Path("data/store.db"))
    assert parse_url("sqlite:/var/lib/a b.db") == SqliteUrl(Path("/var/lib/a b.db"))


def test_a_test_may_do_without_waiting_for_the_disk() -> None:
    assert parse_url("sqlite:store.db?synchronous=off") == SqliteUrl(Path("store.db"), is_synced=False)


def test_hosts_name_an_ensemble() -> None:
    url = parse_url("zookeeper://one:2181,two.example,[::1]:2183/kafka/prod")
    assert url == ZooKeeperUrl(("one:2181", "two.example:2181", "[::1]:2183"), "/kafka/prod")
    assert isinstance(url, ZooKeeperUrl)
    assert url.hosts == "one:2181,two.example:2181,[::1]:2183/kafka/prod"
    assert parse_url("zookeeper://one:2181/") == ZooKeeperUrl(("one:2181",))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "store.db",
        "sqlite:",
        "sqlite: ",
        "sqlite:?synchronous=off",
        "zookeeper:one:2181",
        "zookeeper://",
        "zookeeper://one:port",
        "zookeeper://one:0",
        "zookeeper://one:99999",
        "zookeeper://one,,two",
        "zookeeper://one/a//b",
        "zookeeper://one/../x",
        "etcd://one",
    ],
)
def test_anything_else_is_refused_by_name(url: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        parse_url(url)
    assert repr(url) in str(refusal.value)


async def test_an_ensemble_that_does_not_respond_is_waited_for_as_long_as_configured() -> None:
    with pytest.raises(StoreUnavailable, match=r"no ZooKeeper answered at 127\.0\.0\.1:1 within 200 ms"):
        await open_store("zookeeper://127.0.0.1:1", connection_timeout_ms=200)
