"""`odradek log dump` beside Kafka's DumpLogSegments, line by line, on directories of Kafka's and of ours."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from log.given_directories import a_log_directory, open_manager
from log.given_logs import NOW_MS
from odradek.common.ids import TopicPartition
from odradek.log.config import LogConfig
from odradek.records.builder import build_batch
from odradek.records.compression import Codec
from odradek.records.record import Record

pytestmark = pytest.mark.java

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


def lines(command: list[str | Path], files: list[Path]) -> list[str]:
    environment = os.environ | {"LC_ALL": "C.UTF-8", "PYTHONUTF8": "1"}
    joined = ",".join(map(str, files))
    run = subprocess.run([*command, "--files", joined], capture_output=True, env=environment, check=False)
    return run.stdout.decode("utf-8").splitlines()


def kafkas(files: list[Path], *flags: str) -> list[str]:
    return lines([ROOT / "bench" / "peers" / "run-class", "DumpLogSegments", *flags], files)


def ours(files: list[Path], *flags: str) -> list[str]:
    return lines([sys.executable, "-m", "odradek.cli.main", "log", "dump", *flags], files)


def files_in(*directories: Path) -> list[Path]:
    return [path for one in directories for path in sorted(one.rglob("*")) if path.suffix in KINDS]


@pytest.fixture(scope="module")
def our_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions with transactions in small segments, and one with whatever bytes a record may hold."""
    directory = a_log_directory(tmp_path_factory.mktemp("dump") / "data", batches=40)
    config = LogConfig(internal_segment_bytes=20_000)
    manager = open_manager(directory, config)
    log = manager.get_or_create(TopicPartition("wild", 0), config, now_ms=NOW_MS)
    draw = random.Random(9)
    for number in range(60):
        records = [wild_record(draw, offset) for offset in range(draw.randrange(1, 20))]
        log.append_as_leader(build_batch(records, codec=Codec(number % len(Codec))), 0, now_ms=NOW_MS)
    manager.stop(NOW_MS)
    return directory


def wild_record(draw: random.Random, offset: int) -> Record:
    def content() -> bytes | None:
        return draw.choice(
            [None, b"", draw.randbytes(draw.randrange(40)), "grün €😀 \ud800".encode(errors="replace")]
        )

    headers = tuple((draw.choice(["trace", "", "ключ"]), content()) for _ in range(draw.randrange(3)))
    return Record(offset, NOW_MS + draw.randrange(10**6), content(), content(), headers)


FLAGS = [
    [],
    ["--deep-iteration"],
    ["--print-data-log"],
    ["--print-data-log", "--skip-record-metadata"],
    ["--verify-index-only"],
    ["--index-sanity-check"],
    ["--max-bytes", "700"],
]


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_logs_and_indexes_of_kafka_and_of_ours_are_printed_alike(
    our_directory: Path, flags: list[str]
) -> None:
    files = files_in(DATA / "segments", DATA / "coordinators", our_directory)
    assert len(files) > 80
    assert ours(files, *flags) == kafkas(files, *flags)


@pytest.mark.parametrize(
    ("name", "decoder"),
    [
        ("__consumer_offsets-0", "--offsets-decoder"),
        ("__transaction_state-0", "--transaction-log-decoder"),
    ],
)
def test_coordinators_records_are_decoded_alike(name: str, decoder: str) -> None:
    files = sorted((DATA / "coordinators" / name).glob("*.log"))
    printed = ours(files, decoder)
    assert printed == kafkas(files, decoder)
    assert any("payload: {" in line for line in printed)


def test_a_torn_log_is_printed_alike(our_directory: Path, tmp_path: Path) -> None:
    torn = tmp_path / "00000000000000000000.log"
    torn.write_bytes(min((our_directory / "orders-0").glob("*.log")).read_bytes()[:-20])
    assert ours([torn]) == kafkas([torn])


def test_kafka_finds_nothing_wrong_with_our_indexes(our_directory: Path) -> None:
    indexes = [path for path in files_in(our_directory) if path.suffix in (".index", ".timeindex")]
    command = [ROOT / "bench" / "peers" / "run-class", "DumpLogSegments", "--verify-index-only", "--files"]
    run = subprocess.run([*command, ",".join(map(str, indexes))], capture_output=True, text=True, check=True)
    assert run.stderr == ""
