from __future__ import annotations


def named(cli, group, *flags):
    return [line for line in cli.lines("groups", "list", *flags) if line.startswith(group)]


def test_groups_are_listed_by_name(cli, left):
    assert named(cli, left) == [left]
    assert cli.lines("groups", "list") == sorted(cli.lines("groups", "list"))
    (row,) = [row for row in cli.objects("groups", "list") if row["group"] == left]
    assert row == {"group": left, "type": "Classic", "state": "Empty"}


def test_states_and_types_are_columns_and_filters(cli, left):
    (line,) = named(cli, left, "--state", "--type")
    assert line.split() == [left, "Classic", "Empty"]
    assert cli.lines("groups", "list", "--state")[0].split() == ["GROUP", "STATE"]
    assert named(cli, left, "--state", "empty,stable") == named(cli, left, "--state")
    assert named(cli, left, "--state", "stable") == []
    assert named(cli, left, "--type", "consumer") == []


def test_a_state_that_is_none_is_a_mistake(cli):
    assert "'sleepy' is none of PreparingRebalance" in cli.error(
        "groups", "list", "--state", "sleepy", exit_code=2
    )
