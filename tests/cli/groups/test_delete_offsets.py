from __future__ import annotations


def test_offsets_are_forgotten(cli, left, filled):
    reported = cli.lines("groups", "delete-offsets", left, "--topic", f"{filled}:1")
    assert reported[:2] == [f"Request succeeded for deleting offsets from group {left}.", ""]
    assert reported[2].split() == ["TOPIC", "PARTITION", "STATUS"]
    assert reported[3].split() == [filled, "1", "Successful"]
    assert [row["partition"] for row in cli.objects("groups", "describe", left)] == [0]
    rows = cli.objects("groups", "delete-offsets", left, "--all-topics")
    assert rows == [{"topic": filled, "partition": 0, "status": "Successful"}]
    assert f"group '{left}' has no offsets" in cli.error("groups", "delete-offsets", left, "--all-topics")


def test_what_is_still_read_is_kept(cli, join, filled, group):
    join("reader")
    reported = cli.error("groups", "delete-offsets", group, "--topic", filled)
    assert f"group '{group}' is in use: members read this topic. Stop them and try again" in reported


def test_a_mistake_is_reported(cli, left, filled):
    assert "there is no group 'nobody-at-all'" in cli.error(
        "groups", "delete-offsets", "nobody-at-all", "--topic", filled
    )
    assert "there is no topic" in cli.error("groups", "delete-offsets", left, "--topic", "zzz")
    assert "give either --topic" in cli.error("groups", "delete-offsets", left, exit_code=2)
