"""Where ZooKeeper's jars may be."""

from __future__ import annotations

import importlib.util

import pytest

from odradek.cli.connecting import Failed
from odradek.cli.zookeeper.jars import find_class_path


@pytest.fixture(autouse=True)
def no_pyspark(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_a_directory_that_is_given_counts_alone(tmp_path):
    touch(tmp_path / "jars" / "zookeeper-3.9.4.jar")
    assert find_class_path(str(tmp_path / "jars"), tmp_path) == f"{tmp_path}/jars/*"
    with pytest.raises(Failed, match=r"has no zookeeper-\*\.jar"):
        find_class_path(str(tmp_path), tmp_path)


def test_the_newest_of_the_caches_is_taken(tmp_path):
    for version in ("3.8.4", "3.10.0", "3.9.4"):
        touch(tmp_path / ".cache" / "peers" / version / f"zookeeper-{version}.jar")
    assert find_class_path(None, tmp_path, tmp_path) == f"{tmp_path}/.cache/peers/3.10.0/*"


def test_pysparks_come_first(tmp_path, monkeypatch):
    touch(tmp_path / ".cache" / "peers" / "libs" / "zookeeper-3.8.4.jar")
    touch(tmp_path / "pyspark" / "jars" / "zookeeper-3.9.5.jar")
    spec = importlib.util.spec_from_loader("pyspark", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "pyspark")]
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: spec)
    assert find_class_path(None, tmp_path, tmp_path) == f"{tmp_path}/pyspark/jars/*"


def test_mavens_repository_has_each_jar_in_a_place_of_its_own(tmp_path):
    repository = tmp_path / ".m2" / "repository"
    own = touch(repository / "org/apache/zookeeper/zookeeper/3.8.4/zookeeper-3.8.4.jar")
    jute = touch(repository / "org/apache/zookeeper/zookeeper-jute/3.8.4/zookeeper-jute-3.8.4.jar")
    touch(repository / "io/netty/netty-common/4.1.9/netty-common-4.1.9.jar")
    netty = touch(repository / "io/netty/netty-common/4.1.105.Final/netty-common-4.1.105.Final.jar")
    assert find_class_path(None, tmp_path, tmp_path) == f"{own}:{jute}:{netty}"


def test_debians_package_is_the_last(tmp_path):
    touch(tmp_path / "java" / "zookeeper.jar")
    assert find_class_path(None, tmp_path, tmp_path / "java") == f"{tmp_path}/java/*"


def test_one_sentence_says_how_to_get_them(tmp_path):
    with pytest.raises(Failed, match="apt install zookeeper") as refusal:
        find_class_path(None, tmp_path, tmp_path)
    assert "\n" not in str(refusal.value)
