"""Traces of Spark and of Python as one sentence."""

from __future__ import annotations

import pytest

from odradek.common.errors import ConfigError
from odradek.spark.pipeline.definition.errors import PipelineError
from odradek.spark.pipeline.driver.failures import failure_of

TASK = """Job aborted: Task 0 in stage 1.0 failed 1 times: org.apache.spark.api.python.PythonException:
Traceback (most recent call last):
  File "worker.py", line 1, in main
odradek.spark.sink.delivery.WriteFailed: cannot write into topic 'a': no leader
\tat org.apache.spark.Executor.run(Executor.scala)
"""


BAD_RECORD = "odradek: bad record in orders, partition 0, offset 7: x"
NOT_CONNECTED = "Python worker failed to connect back"
DISK = "java.net.ConnectException: boom\nCaused by: java.io.IOException: the disk has gone\n"
STATE = "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema"
PYTHON = "[PYTHON_DATA_SOURCE_ERROR] Failed: Traceback (most recent call last):\n  File x\n"
GONE = "[KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data may be missing"


@pytest.mark.parametrize(
    ("text", "sentence", "is_permanent"),
    [
        (TASK, "cannot write into topic 'a': no leader", False),
        (f"[USER_RAISED] {BAD_RECORD} SQLSTATE: P0001\n at a", f"{BAD_RECORD}. Correct the schema", True),
        (STATE, "the state in the checkpoint does not fit", True),
        (GONE, "records that the checkpoint has not read yet are gone", True),
        ("Failed to find data source: delta. Make sure", "Delta's jars are missing", True),
        (DISK, "IOException: the disk has gone", False),
        (
            f"{PYTHON}odradek.common.errors.ConfigError: the option failOnDataLoss is 'no'\n",
            "the option failOnDataLoss is 'no'",
            True,
        ),
        (f"{PYTHON}odradek.spark.errors.UnknownTopic: topic 'a' does not exist on b:1\n", "topic 'a'", True),
        (f"{PYTHON}odradek.spark.errors.WrongColumns: no column c\n", "no column c", True),
        (f"{PYTHON}odradek.spark.sink.rows.WrongRows: the column value is missing\n", "the column", True),
        (f"{PYTHON}odradek.spark.errors.DamagedRecords: the batch at offset 7\n", "the batch at", True),
        (f"{PYTHON}odradek.spark.errors.ReadFailed: cannot read a-0\n", "cannot read a-0", False),
        (
            f"{PYTHON}odradek.spark.errors.DataLost: offsets 1 to 2; or set failOnDataLoss=false\n",
            "records that the checkpoint has not read yet are gone",
            True,
        ),
        ("java.io.IOException: No space left on device", "the disk is full", False),
        (
            "org.apache.hadoop.security.AccessControlException: Permission denied: user=a, path=/b",
            "a file or directory may not be used: change its owner",
            True,
        ),
        (
            "Traceback (most recent call last):\nPermissionError: [Errno 13] Permission denied: '/out/a'\n",
            "a file or directory may not be used: change its owner or its permissions, or name another "
            "directory (PermissionError: [Errno 13] Permission denied: '/out/a')",
            True,
        ),
        (
            "org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:/a",
            "a file is where a directory should be",
            True,
        ),
        ("All masters are unresponsive! Giving up.", "the Spark master cannot be reached", False),
        (f"{NOT_CONNECTED}.\n=== Streaming Query ===", NOT_CONNECTED, False),
    ],
)
def test_a_trace_becomes_a_sentence(text, sentence, is_permanent):
    failure = failure_of(RuntimeError(text))
    assert failure.sentence.startswith(sentence)
    assert "\n" not in failure.sentence
    assert failure.is_permanent is is_permanent


def test_words_of_the_plan_are_not_those_of_the_failure():
    plan = "=== Streaming Query ===\nLogical Plan:\nProject [raise_error(odradek: bad record in , _topic#1)]"
    failure = failure_of(RuntimeError(f"{GONE}\n{plan} failOnDataLoss"))
    assert failure.sentence.startswith("records that the checkpoint has not read yet are gone")
    assert (
        failure_of(RuntimeError(f"the disk has gone\n{plan} failOnDataLoss")).sentence == "the disk has gone"
    )


def test_an_error_of_the_system_that_no_restart_changes_is_permanent():
    for error in (
        PermissionError(13, "Permission denied", "/out"),
        NotADirectoryError(20, "Not a directory"),
    ):
        assert failure_of(error).is_permanent
    assert not failure_of(OSError(28, "No space left on device")).is_permanent


def test_errors_of_the_file_stay_as_they_are():
    failure = failure_of(PipelineError("no"))
    assert (failure.sentence, failure.is_permanent) == ("no", True)


def test_an_error_of_ours_that_no_restart_changes_is_permanent():
    assert failure_of(ConfigError("the option a is wrong")).is_permanent
