from __future__ import annotations

import json


def test_groups_are_deleted_with_their_offsets(cli, left):
    reported = cli.lines("groups", "delete", left)
    assert reported == [f"Deletion of requested consumer groups ('{left}') was successful."]
    assert left not in cli.lines("groups", "list")


def test_one_group_that_cannot_go_does_not_keep_the_other(cli, left, join, group):
    join("reader", group_id=f"{group}-2")
    done = cli.run("groups", "delete", f"{group}-2", left, "--group", "nobody-at-all", exit_code=1)
    assert done.stdout == f"These consumer groups were deleted successfully: '{left}'\n"
    assert f"group '{group}-2' is in use: it has members. Stop them and try again" in done.stderr
    assert "there is no group 'nobody-at-all'" in done.stderr


def test_json_names_what_was_deleted(cli, left):
    (line,) = cli.lines("groups", "delete", left, "-o", "json")
    assert json.loads(line) == {"group": left, "deleted": True}
    assert "give groups, or --all-groups" in cli.error("groups", "delete", exit_code=2)


def test_all_groups_may_be_deleted_at_once(cli, left, join, group):
    join("reader", group_id=f"{group}-2")
    done = cli.run("groups", "delete", "--all-groups", exit_code=1)
    assert f"'{left}'" in done.stdout
    assert cli.lines("groups", "list") == [f"{group}-2"]
