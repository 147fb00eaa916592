from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from log.given_directories import a_log_directory
from log.given_logs import NOW_MS, a_batch, open_log
from odradek.cli.main import odradek

DATA = Path(__file__).parents[2] / "data"
SEGMENTS = DATA / "segments"
COORDINATORS = DATA / "coordinators"


def dump(*arguments: str | Path) -> Result:
    return CliRunner().invoke(odradek, ["log", "dump", *map(str, arguments)])


def logs(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.log"))


@pytest.mark.parametrize(
    "name", ["librdkafka", "java", "transactions", "log-append-time", "compacted"], ids=str
)
def test_a_deep_dump_is_kafkas_line_by_line(name: str) -> None:
    result = dump("--deep-iteration", *logs(SEGMENTS / name))
    expected = (SEGMENTS / name / "dump.txt").read_text()
    assert result.stdout.replace(f"{SEGMENTS / name}/", "").splitlines() == expected.splitlines()
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("name", "decoder"),
    [
        ("__consumer_offsets-0", "--offsets-decoder"),
        ("__transaction_state-0", "--transaction-log-decoder"),
    ],
)
def test_coordinators_records_are_decoded_as_kafka_does(name: str, decoder: str) -> None:
    result = dump(decoder, *logs(COORDINATORS / name))
    expected = (COORDINATORS / name / "dump.txt").read_text()
    assert result.stdout.replace(f"{COORDINATORS / name}/", "").splitlines() == expected.splitlines()


def test_files_may_be_given_as_kafka_takes_them() -> None:
    files = [SEGMENTS / "java" / "00000000000000000000.log", SEGMENTS / "java" / "00000000000000000000.index"]
    result = dump("--files", ",".join(map(str, files)))
    assert [line for line in result.stdout.splitlines() if line.startswith("Dumping")] == [
        f"Dumping {path}" for path in files
    ]


def test_of_a_directory_everything_is_dumped(tmp_path: Path) -> None:
    directory = a_log_directory(tmp_path / "data")
    result = dump(directory)
    dumped = [
        line.removeprefix("Dumping ") for line in result.stdout.splitlines() if line.startswith("Dumping")
    ]
    kinds = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    assert sorted(dumped) == sorted(str(path) for path in directory.rglob("*") if path.suffix in kinds)
    assert result.exit_code == 0
    assert result.stderr == ""


def test_a_shallow_dump_does_not_go_into_batches() -> None:
    assert "| offset" not in dump(*logs(SEGMENTS / "java")).stdout


def test_keys_and_values_are_printed_on_request() -> None:
    result = dump("--print-data-log", "--skip-record-metadata", *logs(SEGMENTS / "java"))
    assert "| key: key-3 payload: payload payload payload " in result.stdout.splitlines()


def test_integers_can_be_decoded(tmp_path: Path) -> None:
    log = open_log(tmp_path / "orders-0")
    log.append_as_leader(a_batch(1, key=b"\0\0\0\7", value=b"\xff" * 8), 0, now_ms=NOW_MS)
    log.close(NOW_MS)
    classes = ("--key-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder", "--value-decoder-class")
    result = dump(*classes, "LongDecoder", *logs(tmp_path / "orders-0"))
    assert "key: 7 payload: -1" in result.stdout


def test_max_bytes_ends_the_dump_at_a_whole_batch() -> None:
    path = logs(SEGMENTS / "librdkafka")[0]
    size = int.from_bytes(path.read_bytes()[8:12], "big") + 12
    for limit, batches in ((size - 1, 0), (size, 1), (size + 10, 1)):
        result = dump("--max-bytes", str(limit), path)
        assert result.stdout.count("baseOffset") == batches
        assert "invalid bytes" not in result.stdout


def test_index_flags_choose_what_is_said_of_an_index(tmp_path: Path) -> None:
    directory = a_log_directory(tmp_path / "data") / "orders-0"
    index = directory / "00000000000000000000.index"
    assert dump(index).stdout.splitlines()[1].startswith("offset: ")
    assert dump("--verify-index-only", index).stdout.splitlines() == [f"Dumping {index}"]
    assert dump("--index-sanity-check", index).stdout.splitlines()[1] == f"{index} passed sanity check."


def test_an_index_that_lies_is_a_problem(tmp_path: Path) -> None:
    directory = a_log_directory(tmp_path / "data") / "orders-0"
    index = directory / "00000000000000000000.index"
    content = bytearray(index.read_bytes())
    content[7] += 1
    index.write_bytes(content)
    result = dump("--verify-index-only", index)
    assert result.exit_code == 1
    assert "Index offset" in result.stderr


def test_a_time_index_that_lies_is_a_problem(tmp_path: Path) -> None:
    directory = a_log_directory(tmp_path / "data") / "orders-0"
    index = directory / "00000000000000000000.timeindex"
    content = bytearray(index.read_bytes())
    content[7] ^= 1
    index.write_bytes(content)
    result = dump(index)
    assert result.exit_code == 1
    assert "log timestamp" in result.stderr


@pytest.mark.parametrize("name", ["00000000000000000000.txnindex", "00000000000000000064.snapshot"])
def test_a_damaged_side_file_is_a_problem_and_no_traceback(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\7" * 50)
    result = dump(tmp_path / name)
    assert result.exit_code == 1
    assert name in result.stderr
    assert isinstance(result.exception, SystemExit)


def test_a_wrong_crc_is_shown_and_a_problem(tmp_path: Path) -> None:
    content = bytearray(logs(SEGMENTS / "transactions")[0].read_bytes())
    content[22] ^= 8  # now the attributes say log append time
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(content)
    result = dump(path)
    assert result.stdout.count("isvalid: false") == 1
    assert result.exit_code == 1
    assert "CRC" in result.stderr


@pytest.mark.parametrize("cut", [1, 30, 77])
def test_a_torn_end_is_counted(tmp_path: Path, cut: int) -> None:
    content = logs(SEGMENTS / "transactions")[0].read_bytes()
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(content[:-cut])
    result = dump(path)
    assert f"Found {78 - cut} invalid bytes at the end of {path.name}" in result.stdout
    assert result.exit_code == 1


def test_records_that_cannot_be_read_are_a_problem_and_the_dump_continues(tmp_path: Path) -> None:
    content = bytearray(logs(SEGMENTS / "transactions")[0].read_bytes())
    content[70:90] = b"\xff" * 20  # inside of the first, compressed batch
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(content)
    result = dump("--deep-iteration", path)
    assert result.stdout.count("baseOffset") == 9
    assert result.exit_code == 1


def test_an_empty_log_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.touch()
    result = dump(path)
    assert result.stdout.splitlines() == [f"Dumping {path}", "Log starting offset: 0"]
    assert result.exit_code == 0


def test_json_has_one_object_per_line_with_the_same_names() -> None:
    path = logs(SEGMENTS / "transactions")[0]
    result = dump("-o", "json", "--print-data-log", path)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["file"] for row in rows} == {str(path)}
    assert rows[0] == {"file": str(path), "kind": "log", "startOffset": 0}
    assert rows[1]["kind"] == "batch"
    assert (rows[1]["baseOffset"], rows[1]["isvalid"], rows[1]["compresscodec"]) == (0, True, "zstd")
    assert rows[2]["payload"] == "in transaction 0"
    assert sum(row.get("endTxnMarker") == "ABORT" for row in rows) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cluster-metadata-decoder", "x"], "not offered"),
        (["--value-decoder-class", "com.example.Mine", "{log}"], "Java classes are not loaded"),
        (["{other}"], "not a segment file"),
        (["{index}"], "No such file or directory"),
        (["{empty}"], "neither a partition"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, arguments: list[str], words: str) -> None:
    places = {
        "log": logs(SEGMENTS / "java")[0],
        "other": tmp_path / "notes.txt",
        "index": tmp_path / "00000000000000000007.index",
        "empty": tmp_path / "empty",
    }
    places["other"].write_text("hello")
    places["index"].write_bytes(bytes(8))
    places["empty"].mkdir()
    command = [
        sys.executable,
        "-m",
        "odradek.cli.main",
        "log",
        "dump",
        *(a.format(**places) for a in arguments),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert words in result.stderr
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    directory = a_log_directory(tmp_path / "data")
    command = (
        f"{sys.executable} -m odradek.cli.main log dump --deep-iteration {directory} {directory} | head -1"
    )
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert result.stdout.startswith("Dumping")
    assert result.stderr == ""
