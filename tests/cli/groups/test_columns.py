from __future__ import annotations

from odradek.cli.groups.columns import GroupColumn, column_lines


def test_a_column_grows_with_what_is_in_it_if_it_may():
    columns = [
        GroupColumn("GROUP", "group", 6, grows=True),
        GroupColumn("LAG", "lag", 4),
        GroupColumn("WHO", "who", 0),
    ]
    rows = [{"group": "long-name", "lag": 12345, "who": "me"}, {"group": "b", "lag": None, "who": None}]
    assert column_lines(columns, rows) == ["", "GROUP     LAG  WHO", "long-name 12345 me", "b         -    -"]


def test_a_margin_is_beside_the_longest_value():
    column = GroupColumn("GROUP", "group", 3, grows=True, margin=2)
    assert column_lines([column], [{"group": "longer"}]) == ["", "GROUP   ", "longer  "]
