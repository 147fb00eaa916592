from __future__ import annotations

from odradek.coordinator.partitioning import java_hash, partition_for


def test_keys_are_placed_by_javas_hash() -> None:
    assert java_hash("") == 0
    assert java_hash("hello") == 99162322
    assert java_hash("my-group") == -1906497762
    assert java_hash("\U0001f600x") == 54959989
    assert java_hash("polygenelubricants") == -(2**31)
    assert java_hash("café 🎈") == 548523307
    assert partition_for("polygenelubricants", 50) == 0
