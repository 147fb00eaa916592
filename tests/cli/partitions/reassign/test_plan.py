"""Plans as JSON."""

from __future__ import annotations

import json

import pytest

from odradek.cli.options import UsageProblem
from odradek.cli.partitions.elect_leaders import parse_partitions
from odradek.cli.partitions.reassign.plan import Replica, format_plan, parse_plan, parse_topics
from odradek.common.ids import TopicPartition

FIRST, SECOND = TopicPartition("a", 0), TopicPartition("a", 1)


def test_a_plan_is_read_as_it_was_written():
    text = format_plan({SECOND: (3, 1), FIRST: (1, 2)}, {Replica(FIRST, 2): "/data/b"})
    assert text == (
        '{"version":1,"partitions":['
        '{"topic":"a","partition":0,"replicas":[1,2],"log_dirs":["any","/data/b"]},'
        '{"topic":"a","partition":1,"replicas":[3,1],"log_dirs":["any","any"]}]}'
    )
    plan = parse_plan(text)
    assert plan.replicas == {FIRST: (1, 2), SECOND: (3, 1)}
    assert plan.log_dirs == {Replica(FIRST, 2): "/data/b"}


def test_version_and_directories_may_be_left_out():
    plan = parse_plan('{"partitions": [{"topic": "a", "partition": 0, "replicas": [1]}]}')
    assert plan == ({FIRST: (1,)}, {})


def a_row(**changes):
    return {"topic": "a", "partition": 0, "replicas": [1, 2], **changes}


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"partitions": []}, "cannot be empty"),
        ({"partitions": [a_row(replicas=[])]}, "replica list cannot be empty"),
        ({"partitions": [a_row(), a_row()]}, "duplicate topic partitions: a-0"),
        ({"partitions": [a_row(replicas=[1, 1])]}, "a-0 contains multiple entries for 1"),
        ({"partitions": [a_row(log_dirs=["any"])]}, "different from size of log dirs"),
        ({"partitions": [a_row(partition="x")]}, "is not like a partition"),
        ({"partitions": ["x"]}, "is not like a partition"),
        ({"partitions": {}}, "the file is not like"),
        ({"topics": []}, "the file is not like"),
        ([], "the file is not like"),
        ({"partitions": [], "version": 2}, "only version 1"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(document, problem):
    with pytest.raises(UsageProblem, match=problem):
        parse_plan(json.dumps(document))


def test_a_file_that_is_no_json_is_refused():
    with pytest.raises(UsageProblem, match="the file is not like"):
        parse_plan("{")


def test_topics_to_move_are_named_once():
    assert parse_topics('{"topics": [{"topic": "a"}, {"topic": "b"}], "version": 1}') == ["a", "b"]
    with pytest.raises(UsageProblem, match="duplicate entries: a"):
        parse_topics('{"topics": [{"topic": "a"}, {"topic": "a"}]}')
    with pytest.raises(UsageProblem, match="not like"):
        parse_topics('{"topics": ["a"]}')


def test_partitions_to_elect_are_read_from_a_file():
    assert parse_partitions('{"partitions": [{"topic": "a", "partition": 1}]}') == [SECOND]
    with pytest.raises(UsageProblem, match="not like"):
        parse_partitions('{"partitions": [{"topic": "a"}]}')
