"""Each state of a cluster, and what the doctor says of it."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from odradek.cli.doctor.cluster_findings import diagnose
from odradek.cli.doctor.cluster_state import ClusterState, TopicState
from odradek.cli.doctor.finding import Finding, Severity
from odradek.client.admin.cluster import BrokerDescription, ClusterDescription
from odradek.client.admin.log_dirs import LogDirDescription
from odradek.client.admin.topics import PartitionDescription, TopicDescription
from odradek.client.broker_errors import broker_error
from odradek.common.error_codes import ErrorCode


def cluster(*ids: int, controller: int | None = 0) -> ClusterDescription:
    brokers = tuple(BrokerDescription(one, "host", 9092 + one, None) for one in ids)
    return ClusterDescription("id", controller, brokers)


def topic(*partitions: PartitionDescription, min_isr: int = 2, is_throttled: bool = False) -> TopicState:
    return TopicState(TopicDescription("orders", UUID(int=1), False, partitions), min_isr, is_throttled)


def partition(leader: int | None, isr: tuple[int, ...], **changes: object) -> PartitionDescription:
    return replace(PartitionDescription(0, leader, 3, (0, 1, 2), isr), **changes)


def state(described: ClusterDescription, orders: TopicState | None = None, **changes: object) -> ClusterState:
    topics = {} if orders is None else {"orders": orders}
    return replace(ClusterState(described, topics, {}), **changes)


def the_one(state: ClusterState) -> Finding:
    (finding,) = diagnose(state)
    return finding


def about(state: ClusterState, problem: str) -> Finding:
    (finding,) = [one for one in diagnose(state) if problem in one.problem]
    return finding


def test_a_cluster_without_problems_has_no_findings():
    assert diagnose(state(cluster(0, 1, 2), topic(partition(0, (0, 1, 2))))) == []


def test_a_cluster_without_a_controller():
    finding = the_one(state(cluster(0, 1, 2, controller=None)))
    assert (finding.severity, finding.problem) == (Severity.ERROR, "the cluster has no controller")


def test_a_dead_broker_is_named_with_its_replicas():
    finding = about(state(cluster(0, 1), topic(partition(0, (0, 1)))), "broker 2 is not registered")
    assert "replicas of 1 partition," in finding.reason
    assert "start it with its own data" in finding.advice


def test_an_under_replicated_partition_names_the_dead_and_the_slow():
    finding = about(state(cluster(0, 1), topic(partition(0, (0,)), min_isr=1)), "under-replicated")
    assert finding.severity is Severity.WARNING
    assert finding.reason == "broker 1 is alive and behind, broker 2 is not registered"
    assert finding.names == ("orders-0",)


def test_a_partition_under_its_min_isr_refuses_writes():
    finding = about(state(cluster(0), topic(partition(0, (0,)))), "under their min.insync.replicas")
    assert finding.severity is Severity.ERROR
    assert finding.reason == "1 of 3 replicas are in sync, 2 are needed; brokers 1, 2 are not registered"


def test_an_offline_partition_whose_replicas_in_sync_are_dead():
    finding = about(state(cluster(0, 1), topic(partition(None, (2,)))), "offline")
    assert "no replica in sync is alive: broker 2 is not registered; brokers 0, 1 are alive" in finding.reason
    assert finding.advice.startswith("start broker 2 with its data")
    assert "--election-type unclean" in finding.advice


def test_an_offline_partition_without_any_live_replica():
    finding = about(state(cluster(7), topic(partition(None, (0, 2)))), "offline")
    assert finding.reason == "no replica is alive: brokers 0, 1, 2 are not registered"
    assert finding.advice == "start a broker that was in sync: 0, 2"


def test_an_offline_partition_on_an_offline_log_directory():
    failed = {1: {"/data/b": broker_error(ErrorCode.KAFKA_STORAGE_ERROR, "I/O error")}}
    one = replace(partition(None, (1,)), replicas=(1,), offline_replicas=(1,))
    found = state(cluster(0, 1), topic(one, min_isr=1), log_dirs=failed)
    finding = about(found, "partitions are offline")
    assert finding.reason == "no replica is alive: broker 1 is with an offline log directory"
    assert about(found, "log directory /data/b of broker 1 is offline").reason == "I/O error"


def test_an_offline_partition_that_could_be_led():
    finding = about(state(cluster(0, 1, 2), topic(partition(None, (1, 2)))), "offline")
    assert finding.reason.startswith("a replica in sync is alive (1, 2)")
    assert "controller" in finding.advice


def test_a_broker_that_is_registered_and_does_not_answer():
    hung = {2: "host:9094: timed out"}
    found = state(cluster(0, 1, 2), topic(partition(0, (0, 1))), unreachable=hung)
    assert about(found, "broker 2 is registered and does not answer").reason == "host:9094: timed out"
    assert about(found, "under-replicated").reason == "broker 2 is not answering"


def test_partitions_with_one_cause_make_one_finding():
    parts = [replace(partition(0, (0, 1)), partition=index) for index in range(9)]
    finding = about(state(cluster(0, 1, 2), topic(*parts)), "under-replicated")
    assert len(finding.names) == 9
    assert finding.lines()[0].endswith("orders-0, orders-1, orders-2, orders-3, orders-4 and 4 more")


def test_a_reassignment_under_way_is_no_problem():
    moving = replace(partition(0, (0, 1)), replicas=(0, 1, 2))
    assert diagnose(state(cluster(0, 1, 2), topic(moving, is_throttled=True), reassignments=1)) == []


def test_a_throttle_that_was_left_behind():
    finding = the_one(state(cluster(0, 1, 2), topic(partition(0, (0, 1, 2)), is_throttled=True)))
    assert "reassign verify" in finding.advice


def test_a_leader_that_is_not_the_preferred_one():
    finding = the_one(state(cluster(0, 1, 2), topic(partition(1, (0, 1, 2)))))
    assert finding.severity is Severity.WARNING
    assert "broker 1 leads instead of broker 0" in finding.reason


def test_a_min_isr_as_large_as_the_replication_factor():
    finding = the_one(state(cluster(0, 1, 2), topic(partition(0, (0, 1, 2)), min_isr=3)))
    assert "when one broker stops, writes stop" in finding.reason


def test_a_disk_that_is_nearly_full():
    directory = LogDirDescription("/data", {}, 100 << 20, 1 << 20)
    finding = the_one(state(cluster(0), log_dirs={0: {"/data": directory}}))
    assert finding.reason.startswith("1 of 100 MiB are usable")


def test_errors_come_first():
    slow = replace(partition(0, (0, 1)), partition=0)
    dead = replace(partition(None, ()), partition=1)
    found = diagnose(state(cluster(0, 1, 2), topic(slow, dead)))
    assert [one.severity for one in found] == [Severity.ERROR, Severity.WARNING]
