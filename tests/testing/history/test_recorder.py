"""What workers recorded is read together; a line that a kill tore is left out."""

from __future__ import annotations

import pytest

from odradek.testing.history.operations import Fault, Reset, decode
from odradek.testing.history.recorder import Recorder, load, now_ms


def test_files_of_all_workers_are_one_history(tmp_path):
    with Recorder(tmp_path, "one") as one, Recorder(tmp_path, "other") as other:
        one.record(Fault("kill", "1", now_ms()), Fault("pause", "2", now_ms()))
        other.record(Reset(5, "group"))
    with Recorder(tmp_path, "other") as other:
        other.record(Reset(6, "group"))

    history = load(tmp_path)

    assert [fault.kind for fault in history.faults] == ["kill", "pause"]
    assert history.resets == [Reset(5, "group"), Reset(6, "group")]


def test_a_torn_last_line_is_left_out(tmp_path):
    with Recorder(tmp_path, "killed") as recorder:
        recorder.record(Reset(5, "group"))
    with (tmp_path / "killed.history").open("a") as file:
        file.write('["reset",6,"gr')
    assert load(tmp_path).resets == [Reset(5, "group")]


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="unknown kind of operation: wish"):
        decode('["wish",1]')
