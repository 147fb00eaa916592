from __future__ import annotations

import time

import pytest

from odradek import Admin, TopicPartition
from odradek.cli.connecting import Failed
from odradek.cli.groups.reset_offsets import Reset, commit_resets

RESET = ("groups", "reset-offsets")


def offsets(cli, group):
    return [row["current_offset"] for row in cli.objects("groups", "describe", group)]


def test_without_execute_nothing_is_changed_and_that_is_said(cli, left, filled):
    reported = cli.run(*RESET, left, "--all-topics", "--to-earliest")
    assert "Dry run: nothing is changed. The same command with --execute does it." in reported.stderr
    _, titles, first, second = reported.stdout.splitlines()
    assert titles.split() == ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]
    assert [line.split() for line in (first, second)] == [[left, filled, "0", "0"], [left, filled, "1", "0"]]
    assert offsets(cli, left) == [5, 1]
    assert cli.run(*RESET, left, "--all-topics", "--to-earliest", "--dry-run").stdout == reported.stdout


def test_with_execute_it_is_done(cli, left, filled):
    reported = cli.run(*RESET, left, "--all-topics", "--to-earliest", "--execute")
    assert "Dry run" not in reported.stderr
    assert offsets(cli, left) == [0, 0]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--to-latest"], [5, 1]),
        (["--to-current"], [3, 1]),
        (["--to-offset", "1"], [1, 1]),
        (["--to-offset", "0"], [0, 0]),
        (["--shift-by", "0"], [3, 1]),
        (["--to-offset", "99"], [5, 1]),
        (["--shift-by", "1"], [4, 1]),
        (["--shift-by", "-2"], [1, 0]),
        (["--shift-by", "-99"], [0, 0]),
        (["--to-datetime", "1970-01-01T00:00:02.500"], [2, 0]),
        (["--to-datetime", "1970-01-01T02:00:03+02:00"], [2, 0]),
        (["--to-datetime", "1970-01-01T00:00:06Z"], [5, 0]),
        (["--by-duration", "PT1H"], [5, 1]),
    ],
)
def test_every_place_to_go_to(cli, left, filled, flags, expected):
    cli.run(*RESET, left, "--topic", f"{filled}:0", "--to-offset", "3", "--execute")
    rows = cli.objects(*RESET, left, "--topic", filled, *flags)
    assert [row["new_offset"] for row in rows] == expected
    assert [row["current_offset"] for row in rows] == [3, 1]


def test_by_duration_counts_back_from_now(cli, left, filled):
    years = int(time.time() / 86400) + 1
    rows = cli.objects(*RESET, left, "--topic", filled, "--by-duration", f"P{years}D")
    assert [row["new_offset"] for row in rows] == [0, 0]


def test_what_is_exported_can_be_read_back(cli, left, filled, tmp_path):
    exported = cli.run(*RESET, left, "--all-topics", "--to-current", "--export").stdout
    assert exported == f"{filled},0,5\n{filled},1,1\n"
    cli.run(*RESET, left, "--all-topics", "--to-earliest", "--execute")
    file = tmp_path / "offsets.csv"
    file.write_text(f"{exported}\nother,{filled},0,2\n{left},{filled},1,0\n")
    cli.run(*RESET, left, "--from-file", str(file), "--execute")
    assert offsets(cli, left) == [5, 0]


def test_only_the_partitions_that_were_named_are_moved(cli, left, filled):
    cli.run(*RESET, "--group", left, "--topic", f"{filled}:1", "--to-earliest", "--execute")
    assert offsets(cli, left) == [5, 0]


def test_a_group_that_is_not_there_is_made(cli, filled, group):
    reported = cli.run(*RESET, group, "--topic", filled, "--to-offset", "3", "--execute")
    assert "There is no group" in reported.stderr
    assert f"Warning: {filled}-1 ends at offset 1; it cannot be 3." in reported.stderr
    assert offsets(cli, group) == [3, 1]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("mode", ["--execute", "--dry-run"])
def test_a_group_in_use_is_refused_with_what_to_do(cli, join, filled, group, protocol, mode):
    join("reader", group_protocol=protocol)
    reported = cli.error(*RESET, group, "--all-topics", "--to-earliest", mode)
    assert f"group '{group}' is in use: it is Stable and has 1 member. Stop them and try again" in reported
    assert f"`odradek groups describe {group} --members` shows who they are" in reported
    assert offsets(cli, group) == [5, 1]


def test_a_member_that_joins_at_the_last_moment_keeps_its_offsets(cli, join, filled, group):
    join("reader")
    resets = [Reset(TopicPartition(filled, 0), 5, 0)]
    with Admin(bootstrap_servers=cli.bootstrap) as admin, pytest.raises(Failed, match="have just joined"):
        commit_resets(admin, group, resets)
    assert offsets(cli, group) == [5, 1]


@pytest.mark.parametrize(
    ("flags", "exit_code", "words"),
    [
        (["--all-topics"], 2, "give exactly one of them"),
        (["--all-topics", "--to-earliest", "--to-latest"], 2, "--to-earliest, --to-latest: give exactly one"),
        (["--to-earliest"], 2, "give either --topic"),
        (["--to-earliest", "--topic", "x", "--all-topics"], 2, "give either --topic"),
        (["--topic", "x:", "--to-earliest"], 2, "'x:' is neither a topic nor TOPIC:PARTITION"),
        (["--all-topics", "--to-datetime", "soon"], 2, "--to-datetime 'soon' is no date"),
        (["--all-topics", "--by-duration", "1h"], 2, "--by-duration '1h' is no duration"),
        (["--all-topics", "--to-earliest", "--execute", "--dry-run"], 2, "exclude each other"),
        (["--from-file", "nowhere.csv"], 2, "no such file"),
        (["--from-file", __file__, "--all-topics"], 2, "is not [GROUP,]TOPIC,PARTITION,OFFSET"),
        (["--topic", "not-there", "--to-earliest"], 1, "there is no topic 'not-there'"),
        (["--all-topics", "--to-earliest"], 1, "the group has no offsets"),
    ],
)
def test_a_mistake_is_reported(cli, flags, exit_code, words):
    assert words in cli.error(*RESET, "nobody", *flags, exit_code=exit_code)


def test_mistakes_about_groups_and_partitions_are_reported(cli, filled):
    assert "which group?" in cli.error(*RESET, "--all-topics", "--to-latest", exit_code=2)
    assert "one group at a time" in cli.error(*RESET, "a", "b", "--all-topics", "--to-latest", exit_code=2)
    reported = cli.error(*RESET, "nobody", "--topic", f"{filled}:0,7", "--to-latest")
    assert "has no partition 7; it has 0 to 1" in reported
    reported = cli.error(*RESET, "nobody", "--topic", filled, "--shift-by", "1", exit_code=2)
    assert "no offset of" in reported


def test_a_file_and_a_topic_are_one_too_many(cli, tmp_path):
    file = tmp_path / "offsets.csv"
    file.write_text("orders,0,5\n")
    reported = cli.error(*RESET, "nobody", "--from-file", str(file), "--topic", "orders", exit_code=2)
    assert "leave --topic and --all-topics out" in reported


def test_a_file_that_has_no_offsets_is_reported(cli, tmp_path):
    file = tmp_path / "offsets.csv"
    for text, words in (("a,b,c\n", "line 1: 'a,b,c' is not"), ("", "has no offset for group 'nobody'")):
        file.write_text(text)
        assert words in cli.error(*RESET, "nobody", "--from-file", str(file), exit_code=2)
