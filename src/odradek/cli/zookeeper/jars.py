"""Finds the jars of ZooKeeper: of pyspark, a cache, Maven's repository or Debian's package."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

from odradek.cli.connecting import Failed

JARS_VARIABLE = "ODRADEK_ZOOKEEPER_JARS"
HOW_TO_GET = (
    "no jars of ZooKeeper were found: `pip install pyspark` or `apt install zookeeper` brings them, or name "
    f"a directory that has them by --jars or {JARS_VARIABLE}"
)

# What a server of 3.8 or 3.9 loads beside its own jars: group and artifact, as in Maven's repository.
_DEPENDENCIES = (
    ("org/apache/zookeeper", "zookeeper-jute"),
    ("org/slf4j", "slf4j-api"),
    ("io/netty", "netty-buffer"),
    ("io/netty", "netty-codec"),
    ("io/netty", "netty-common"),
    ("io/netty", "netty-handler"),
    ("io/netty", "netty-resolver"),
    ("io/netty", "netty-transport"),
    ("io/netty", "netty-transport-classes-epoll"),
    ("io/netty", "netty-transport-native-epoll"),
    ("io/netty", "netty-transport-native-unix-common"),
    ("io/dropwizard/metrics", "metrics-core"),
    ("org/xerial/snappy", "snappy-java"),
    ("commons-io", "commons-io"),
)
_OWN_JAR = "zookeeper-[0-9]*.jar"


def find_class_path(given: str | None, home: Path, debian: Path = Path("/usr/share/java")) -> str:
    """A class path with a ZooKeeper server; Failed says how to get one."""
    if given is not None:
        directory = Path(given)
        if not any(directory.glob("zookeeper*.jar")):
            raise Failed(f"{directory} has no zookeeper-*.jar")
        return _all_in(directory)
    for class_path in _candidates(home, debian):
        return class_path
    raise Failed(HOW_TO_GET)


def _candidates(home: Path, debian: Path) -> Iterator[str]:
    for directory in (*_of_pyspark(), *_of_caches(home)):
        if any(directory.glob(_OWN_JAR)):
            yield _all_in(directory)
    repository = home / ".m2" / "repository"
    own = _latest(repository, "org/apache/zookeeper", "zookeeper")
    if own is not None:
        found = (_latest(repository, *one) for one in _DEPENDENCIES)
        yield ":".join(str(jar) for jar in (own, *found) if jar is not None)
    if (debian / "zookeeper.jar").exists():
        yield _all_in(debian)


def _of_pyspark() -> Iterator[Path]:
    spec = importlib.util.find_spec("pyspark")
    for directory in (spec.submodule_search_locations or ()) if spec is not None else ():
        yield Path(directory) / "jars"


def _of_caches(home: Path) -> Iterator[Path]:
    """Unpacked distributions, such as ~/.cache/peers/kafka-3.9.2/libs; the newest ZooKeeper first."""
    cache = home / ".cache"
    jars = [jar for depth in ("*", "*/*", "*/*/*") for jar in cache.glob(f"{depth}/{_OWN_JAR}")]
    for jar in sorted(jars, key=lambda jar: _version(jar.stem), reverse=True):
        yield jar.parent


def _latest(repository: Path, group: str, artifact: str) -> Path | None:
    jars = list((repository / group / artifact).glob(f"*/{artifact}-*.jar"))
    return max(jars, key=lambda jar: _version(jar.parent.name), default=None)


def _version(text: str) -> list[int]:
    return [int(part) for part in text.rpartition("-")[2].split(".") if part.isdecimal()]


def _all_in(directory: Path) -> str:
    return f"{directory}/*"
