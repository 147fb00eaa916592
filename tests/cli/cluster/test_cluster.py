from __future__ import annotations

import json


def test_the_id_is_reported(cli):
    (line,) = cli.lines("cluster", "id")
    (reported,) = cli.objects("cluster", "id")
    assert line == f"Cluster ID: {reported['cluster_id']}"


def test_brokers_are_listed(cli):
    host, port = cli.bootstrap.split(":")
    head, line = cli.lines("cluster", "describe")
    assert head.split() == ["ID", "HOST", "PORT", "RACK", "STATE", "CONTROLLER"]
    assert line.split() == ["0", host, port, "null", "unfenced", "yes"]
    assert cli.objects("cluster", "describe") == [
        {"id": 0, "host": host, "port": int(port), "rack": None, "state": "unfenced", "controller": True}
    ]


def test_log_directories_are_the_document_of_kafkas_tool(cli, topic, make_topic):
    make_topic()
    (line,) = cli.lines("cluster", "log-dirs", topic)
    (broker,) = json.loads(line)["brokers"]
    (directory,) = broker["logDirs"]
    assert directory["partitions"] == [
        {"partition": f"{topic}-0", "size": 0, "offsetLag": 0, "isFuture": False}
    ]
    assert directory["error"] is None
    assert "the cluster has 0" in cli.error("cluster", "log-dirs", "--broker-list", "7")


def test_versions_are_printed_as_kafka_prints_them(cli):
    head, *lines, end = cli.lines("cluster", "api-versions")
    assert head == f"{cli.bootstrap} (id: 0 rack: null isFenced: false) -> ("
    assert "\tMetadata(3): 0 to 13 [usable: 13]," in lines
    assert end == ")"
    rows = {row["api"]: row for row in cli.objects("cluster", "api-versions")}
    assert rows["Fetch"] == {"broker": 0, "api": "Fetch", "key": 1, "min": 4, "max": 18, "usable": 18}
