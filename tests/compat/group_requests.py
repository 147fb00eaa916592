"""Dialogues of groups: each holds the same conversation with any broker and notes what it was told.

Ids that the brokers make up are replaced by the names that the dialogue gives to its members, so that two
protocols of one dialogue can be compared line by line.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from broker.wire import WireClient
from compat.compared_requests import ALWAYS_APART, canonical
from odradek.common.error_codes import ErrorCode
from odradek.protocol.api import response_class
from odradek.protocol.api_key import ApiKey
from odradek.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolSubscription,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from odradek.protocol.structs import Message

PATIENCE_S = 30
TOPIC, PARTITIONS = "dialogue", 4
# The order of members is nobody's promise; hosts and intervals are settings.
APART = ALWAYS_APART | {"client_host", "client_id"}

CommitTopic = OffsetCommitRequest.Topics
FetchGroup = OffsetFetchRequest.Groups


class Dialogue:
    """One conversation with one broker. Lines are (step, answer) with known ids by their names."""

    def __init__(self, address: str, topic_id: bytes, group: str, apart: frozenset[str]) -> None:
        self.address = address
        self.topic_id = topic_id
        self.group = group
        self.apart = apart
        self.lines: list[tuple[str, Any]] = []
        self.names: dict[str, str] = {}
        self.clients: dict[str, WireClient] = {}

    def client(self, name: str) -> WireClient:
        if name not in self.clients:
            self.clients[name] = WireClient(self.address)
        return self.clients[name]

    def close(self) -> None:
        for client in self.clients.values():
            client.socket.close()

    def ask(self, step: str, api_key: ApiKey, version: int, body: Message, by: str = "admin") -> Any:
        response = self.client(by).ask(api_key, version, body)
        return self.note(step, api_key, version, response)

    def send(self, api_key: ApiKey, version: int, body: Message, by: str) -> Callable[[str], Any]:
        """Send a request that will have to wait; call the result to receive and note the answer."""
        self.client(by).send(api_key, version, body)
        return lambda step: self.note(step, api_key, version, self.client(by).receive(api_key, version))

    def note(self, step: str, api_key: ApiKey, version: int, response: Any) -> Any:
        fields = response_class(api_key).SPEC.fields
        reported = canonical(response, fields, version, APART | self.apart)
        self.lines.append((f"{len(self.lines)} {step} (v{version})", self.renamed(reported)))
        return response

    def renamed(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.renamed(one) for key, one in value.items()}
        if isinstance(value, list):
            return sorted((self.renamed(one) for one in value), key=repr)
        return self.names.get(value, value) if isinstance(value, str) else value

    # Requests

    def join_body(self, member_id: str = "", **fields: Any) -> JoinGroupRequest:
        topics = fields.pop("topics", [TOPIC])
        offers = fields.pop("protocols", ["range"])
        metadata = b"\0\0" + ConsumerProtocolSubscription(topics=topics).encode(0)
        given = {"session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000, "protocol_type": "consumer"}
        return JoinGroupRequest(
            group_id=self.group,
            member_id=member_id,
            protocols=[JoinGroupRequest.Protocols(name=name, metadata=metadata) for name in offers],
            **(given | fields),
        )

    def join(self, name: str, member_id: str = "", version: int = 9, **fields: Any) -> Any:
        """A join that is answered at once; a new id gets the member's name."""
        body = self.join_body(member_id, **fields)
        response = self.client(name).ask(ApiKey.JOIN_GROUP, version, body)
        if response.member_id and response.member_id not in self.names:
            self.names[response.member_id] = f"{name}-{len(self.names)}"
        return self.note(f"{name} joins", ApiKey.JOIN_GROUP, version, response)

    def enter(self, name: str, **fields: Any) -> str:
        """A dynamic member gets its id and joins; only for the first one, which need not wait."""
        member_id = str(self.join(name, **fields).member_id)
        self.join(name, member_id, **fields)
        return member_id

    def wait_to_join(self, name: str, member_id: str = "", version: int = 9, **fields: Any) -> Any:
        return self.send(ApiKey.JOIN_GROUP, version, self.join_body(member_id, **fields), name)

    def sync(self, name: str, member_id: str, generation_id: int, **fields: Any) -> Any:
        given = fields.pop("given", {})
        fields = {"protocol_type": "consumer", "protocol_name": "range"} | fields
        body = SyncGroupRequest(
            group_id=self.group,
            member_id=member_id,
            generation_id=generation_id,
            assignments=[
                SyncGroupRequest.Assignments(member_id=one, assignment=work) for one, work in given.items()
            ],
            **fields,
        )
        return self.ask(f"{name} syncs", ApiKey.SYNC_GROUP, 5, body, name)

    def heartbeat(self, name: str, member_id: str, generation_id: int, **fields: Any) -> Any:
        body = HeartbeatRequest(
            group_id=self.group, member_id=member_id, generation_id=generation_id, **fields
        )
        return self.ask(f"{name} beats", ApiKey.HEARTBEAT, 4, body, name)

    def wait_for_rebalance(self, name: str, member_id: str, generation_id: int) -> None:
        """Until a heartbeat says so; only the last one is noted."""
        body = HeartbeatRequest(group_id=self.group, member_id=member_id, generation_id=generation_id)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            response = self.client(name).ask(ApiKey.HEARTBEAT, 4, body)
            if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                break
            assert time.monotonic() < deadline
            time.sleep(0.02)
        self.note(f"{name} is to rebalance", ApiKey.HEARTBEAT, 4, response)

    def leave(self, name: str, *leaving: tuple[str, str | None], version: int = 5) -> Any:
        members = [
            LeaveGroupRequest.Members(member_id=member_id, group_instance_id=instance_id)
            for member_id, instance_id in leaving
        ]
        body = LeaveGroupRequest(group_id=self.group, members=members)
        return self.ask(f"{name} leaves", ApiKey.LEAVE_GROUP, version, body, name)

    def commit(self, step: str, version: int = 9, offset: int = 5, partition: int = 0, **fields: Any) -> Any:
        metadata = fields.pop("metadata", "note")
        part = CommitTopic.Partitions(
            partition_index=partition, committed_offset=offset, committed_metadata=metadata
        )
        named = {"topic_id": self.topic_id} if version >= 10 else {"name": TOPIC}
        topics = fields.pop("topics", [CommitTopic(partitions=[part], **named)])
        body = OffsetCommitRequest(group_id=self.group, topics=topics, **fields)
        return self.ask(step, ApiKey.OFFSET_COMMIT, version, body)

    def fetch_offsets(self, step: str, version: int = 9, *, all_of_them: bool = False, **fields: Any) -> Any:
        named = {"topic_id": self.topic_id} if version >= 10 else {"name": TOPIC}
        topics = None if all_of_them else [FetchGroup.Topics(partition_indexes=[0, 1, 99], **named)]
        if version >= 8:
            groups = [FetchGroup(group_id=self.group, topics=topics, **fields)]
            return self.ask(step, ApiKey.OFFSET_FETCH, version, OffsetFetchRequest(groups=groups))
        old = None if all_of_them else [OffsetFetchRequest.Topics(name=TOPIC, partition_indexes=[0, 1, 99])]
        body = OffsetFetchRequest(group_id=self.group, topics=old)
        return self.ask(step, ApiKey.OFFSET_FETCH, version, body)

    def describe(self, version: int = 6) -> Any:
        body = DescribeGroupsRequest(groups=[self.group])
        return self.ask("describe", ApiKey.DESCRIBE_GROUPS, version, body)

    def delete(self, version: int = 2) -> Any:
        body = DeleteGroupsRequest(groups_names=[self.group])
        return self.ask("delete", ApiKey.DELETE_GROUPS, version, body)

    def delete_offsets(self, step: str, topic: str = TOPIC) -> Any:
        part = OffsetDeleteRequest.Topics.Partitions(partition_index=0)
        topics = [OffsetDeleteRequest.Topics(name=topic, partitions=[part])]
        body = OffsetDeleteRequest(group_id=self.group, topics=topics)
        return self.ask(step, ApiKey.OFFSET_DELETE, 0, body)

    def listed(self, **filters: list[str]) -> None:
        """How the group is listed, or that it is not."""
        response = self.client("admin").ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(**filters))
        response.groups = [row for row in response.groups if row.group_id == self.group]
        self.note(f"list {filters}", ApiKey.LIST_GROUPS, 5, response)

    def beat(self, name: str, member_id: str, epoch: int, version: int = 1, **fields: Any) -> Any:
        owned = fields.pop("owned", None)
        if owned is not None:
            row = ConsumerGroupHeartbeatRequest.TopicPartitions
            owned = [row(topic_id=self.topic_id, partitions=owned)] if owned else []
        body = ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=member_id, member_epoch=epoch, topic_partitions=owned, **fields
        )
        step = f"{name} beats in {epoch}"
        return self.ask(step, ApiKey.CONSUMER_GROUP_HEARTBEAT, version, body, name)

    def enter_consumer(self, name: str, **fields: Any) -> Any:
        given = {"rebalance_timeout_ms": 30_000, "owned": [], "subscribed_topic_names": [TOPIC]}
        return self.beat(name, name, 0, **(given | fields))

    def describe_consumer(self, version: int = 1) -> Any:
        body = ConsumerGroupDescribeRequest(group_ids=[self.group])
        return self.ask("describe", ApiKey.CONSUMER_GROUP_DESCRIBE, version, body)


def wait_for_coordinator(address: str, group: str) -> None:
    """Until the group's coordinator is there, and answers."""
    deadline = time.monotonic() + PATIENCE_S
    with WireClient(address) as client:
        while True:
            assert time.monotonic() < deadline, "there is no coordinator"
            body = FindCoordinatorRequest(coordinator_keys=[group])
            (found,) = client.ask(ApiKey.FIND_COORDINATOR, 4, body).coordinators
            if found.error_code == ErrorCode.NONE:
                described = client.ask(ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups=[group]))
                if described.groups[0].error_code == ErrorCode.NONE:
                    return
            time.sleep(0.05)


# The conversations


def nobody_there(d: Dialogue) -> None:
    d.join("ghost", "ghost")
    d.sync("ghost", "ghost", 1)
    d.heartbeat("ghost", "ghost", 1)
    d.leave("ghost", ("ghost", None))
    d.leave("ghost", ("ghost", None), ("", "i"), version=3)
    for version in (2, 5, 8, 9, 10):
        d.commit("commit in a generation", version, generation_id_or_member_epoch=1, member_id="ghost")
    for version in (1, 2, 5, 7, 8, 9, 10):
        d.fetch_offsets("nothing committed", version)
    d.fetch_offsets("all of nothing", all_of_them=True)
    for version in (0, 5, 6):
        d.describe(version)
    d.describe_consumer()
    d.delete()
    d.delete_offsets("offsets of nobody")
    d.listed()


def bad_joins(d: Dialogue) -> None:
    for version in (0, 3, 4, 6, 7, 9):
        d.join("x", "ghost", version, session_timeout_ms=1) if version else None
        d.join("x", session_timeout_ms=2_000_000_000, version=version) if version else None
        d.join("x", protocol_type="", version=version) if version else None
        d.join("x", protocols=[], version=version) if version else None
    group, d.group = d.group, ""
    d.join("x")
    d.sync("x", "x", 1)
    d.heartbeat("x", "x", 1)
    d.leave("x", ("x", None))
    d.group = group


def life_of_a_group(d: Dialogue) -> None:
    first = d.enter("a")
    d.describe()
    d.commit("before the sync", generation_id_or_member_epoch=1, member_id=first)
    d.sync("a", first, 7)
    d.sync("a", "ghost", 1)
    d.sync("a", first, 1, protocol_name=None)
    d.sync("a", first, 1, protocol_name="sticky")
    d.sync("a", first, 1, protocol_type="connect")
    d.sync("a", first, 1, group_instance_id="i")
    d.sync("a", first, 1, given={first: b"work"})
    d.describe()
    d.listed()
    d.listed(states_filter=["stable"])
    d.listed(types_filter=["consumer"])
    d.heartbeat("a", first, 1)
    d.heartbeat("a", first, 2)
    d.heartbeat("a", "ghost", 1)
    d.heartbeat("a", first, 1, group_instance_id="i")
    d.join("b", protocols=["other"])
    d.join("b", protocol_type="connect")
    d.delete()
    second = d.join("b").member_id
    waiting = d.wait_to_join("b", second)
    d.wait_for_rebalance("a", first, 1)
    d.describe()
    d.commit("while preparing", generation_id_or_member_epoch=1, member_id=first)
    d.sync("a", first, 1)
    d.join("a", first)
    waiting("b has joined")
    d.heartbeat("a", first, 2)
    d.commit("while completing", generation_id_or_member_epoch=2, member_id=first)
    d.commit("in the old generation", generation_id_or_member_epoch=1, member_id=first)
    syncing = d.send(
        ApiKey.SYNC_GROUP, 4, SyncGroupRequest(group_id=d.group, member_id=second, generation_id=2), "b"
    )
    d.sync("a", first, 2, given={first: b"1", second: b"2"})
    syncing("b has synced")
    d.sync("b", second, 2)
    d.join("b", second)
    d.leave("a", (first, None), ("ghost", None))
    d.wait_for_rebalance("b", second, 2)
    d.join("b", second)
    d.sync("b", second, 3, given={second: b"all"})
    d.leave("b", (second, None))
    d.describe()
    d.listed()
    d.heartbeat("b", second, 3)
    d.delete()
    d.delete()


def static_members(d: Dialogue) -> None:
    first = d.join("a", group_instance_id="i1").member_id
    d.sync("a", first, 1, group_instance_id="i1", given={first: b"work"})
    back = d.join("a2", group_instance_id="i1").member_id
    d.heartbeat("a", first, 1, group_instance_id="i1")
    d.heartbeat("a", first, 1)
    d.heartbeat("a2", back, 1, group_instance_id="i1")
    d.sync("a2", back, 1, group_instance_id="i1")
    d.commit("fenced", generation_id_or_member_epoch=1, member_id=first, group_instance_id="i1")
    old = d.join("a3", version=8, group_instance_id="i1").member_id
    d.sync("a3", old, 1, group_instance_id="i1")
    changed = d.join("a4", group_instance_id="i1", topics=[TOPIC, "elsewhere"]).member_id
    d.describe()
    d.join("x", "ghost", group_instance_id="i1")
    d.join("x", changed, group_instance_id="i2")
    d.leave("admin", ("", "i2"), ("ghost", "i1"), ("", "i1"))
    d.describe()


def offsets(d: Dialogue) -> None:
    for version in (2, 3, 5, 6, 7, 8, 9, 10):
        d.commit("from outside", version, offset=version)
        d.fetch_offsets("as committed")
    d.commit("no note", metadata=None)
    d.commit("a long note", metadata="x" * 5000)
    d.commit("no such partition", partition=99)
    d.commit("by a ghost", member_id="ghost")
    d.commit("in a generation", generation_id_or_member_epoch=3)
    d.commit("of an instance", group_instance_id="i")
    unknown = CommitTopic.Partitions(partition_index=0, committed_offset=1, committed_metadata="")
    d.commit("no such topic", topics=[CommitTopic(name="nowhere", partitions=[unknown])])
    d.commit("no such id", 10, topics=[CommitTopic(topic_id=b"x" * 16, partitions=[unknown])])
    d.commit("nothing", topics=[])
    for version in (1, 2, 5, 7, 8, 9, 10):
        d.fetch_offsets("as committed", version)
        if version > 1:
            d.fetch_offsets("all", version, all_of_them=True)
    d.fetch_offsets("as a ghost", member_id="ghost", member_epoch=1)
    d.listed()
    d.describe()
    d.delete_offsets("nowhere", "nowhere")
    d.delete_offsets("there")
    d.fetch_offsets("all", all_of_them=True)
    d.commit("again")
    member = d.enter("a")
    d.commit("from outside of a living group")
    d.delete_offsets("of a group in a rebalance")
    d.sync("a", member, 1, given={member: b""})
    d.delete_offsets("of a living group")
    d.leave("a", (member, None))
    d.delete()


def consumer_refusals(d: Dialogue) -> None:
    first = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": [TOPIC]}
    d.beat("a", "a", 0, **first)
    d.beat("a", "a", 0, owned=[0], **first)
    d.beat("a", "a", 0, owned=[], subscribed_topic_names=[TOPIC])
    d.beat("a", "a", 0, owned=[], rebalance_timeout_ms=1000)
    d.beat("a", "", 0, owned=[], **first)
    d.beat("a", "", 5)
    d.beat("a", "", -1)
    d.beat("a", "a", -2)
    d.beat("a", "a", -3)
    d.beat("a", "a", 5)
    d.beat("a", "a", -1)
    d.enter_consumer("a", instance_id="")
    d.enter_consumer("a", rack_id="")
    d.enter_consumer("a", server_assignor="mine")
    d.enter_consumer("a", subscribed_topic_regex="(")
    group, d.group = d.group, ""
    d.enter_consumer("a")
    d.group = group
    d.describe_consumer()
    d.listed()


def life_of_a_consumer_group(d: Dialogue) -> None:
    d.enter_consumer("a")
    d.describe_consumer()
    d.describe_consumer(0)
    d.describe()
    d.describe(5)
    d.listed()
    d.listed(types_filter=["classic"])
    d.listed(states_filter=["Stable"])
    d.beat("a", "a", 2)
    d.beat("a", "a", 2, owned=[0, 1, 2, 3])
    d.beat("a", "a", 9)
    d.beat("a", "a", 1)
    d.beat("b", "b", 2)
    d.beat("b", "b", -1)
    d.commit("by a", generation_id_or_member_epoch=2, member_id="a")
    d.commit("by a, an old client", 8, generation_id_or_member_epoch=2, member_id="a")
    d.commit("by a in another epoch", generation_id_or_member_epoch=1, member_id="a")
    d.commit("by a in an epoch to come", generation_id_or_member_epoch=9, member_id="a")
    d.commit("by b", generation_id_or_member_epoch=2, member_id="b")
    d.commit("from outside")
    d.fetch_offsets("by a", member_id="a", member_epoch=2)
    d.fetch_offsets("by a in another epoch", member_id="a", member_epoch=1)
    d.fetch_offsets("by b", member_id="b", member_epoch=2)
    d.fetch_offsets("from outside")
    d.delete()
    d.delete_offsets("while it is read")
    d.enter_consumer("b")
    d.describe_consumer()
    d.beat("a", "a", 2)
    d.beat("b", "b", 3)
    d.describe_consumer()
    d.beat("a", "a", 2, owned=[0, 1])
    d.beat("a", "a", 3)
    d.beat("b", "b", 3)
    d.describe_consumer()
    d.commit(
        "by a, of what it kept, in the old epoch", partition=0, generation_id_or_member_epoch=2, member_id="a"
    )
    d.commit("by b, of what a had", partition=3, generation_id_or_member_epoch=3, member_id="b")
    d.beat("b", "b", 3, subscribed_topic_names=["elsewhere"])
    d.beat("b", "b", 4, owned=[])
    d.beat("a", "a", 3)
    d.beat("b", "b", -1)
    d.beat("a", "a", 4)
    d.beat("a", "a", 5)
    d.beat("a", "a", -1)
    d.describe_consumer()
    d.listed()
    d.commit("when all are gone")
    d.delete()
    d.describe_consumer()


def static_consumers(d: Dialogue) -> None:
    d.enter_consumer("a", instance_id="i1")
    d.enter_consumer("b", instance_id="i1")
    d.beat("b", "b", 2, instance_id="i1")
    d.beat("a", "a", 2, instance_id="i2")
    d.beat("a", "a", -2, instance_id="i1")
    d.describe_consumer()
    d.enter_consumer("b", instance_id="i1")
    d.describe_consumer()
    d.beat("a", "a", 2, instance_id="i1")
    d.beat("a", "a", -1, instance_id="i1")
    d.beat("b", "b", 2, instance_id="i1")
    d.beat("b", "b", -1, instance_id="i1")
    d.describe_consumer()


def between_the_protocols(d: Dialogue) -> None:
    classic = d.enter("a")
    d.sync("a", classic, 1, given={classic: b""})
    d.enter_consumer("b")
    d.describe_consumer()
    d.describe()
    d.heartbeat("a", classic, 1)
    d.sync("a", classic, 1)
    epoch = d.join("a", classic).generation_id
    d.sync("a", classic, epoch)
    d.heartbeat("a", classic, epoch)
    d.beat("b", "b", 2)
    d.describe_consumer()
    d.join("c", protocols=["other"])
    d.join("c", protocol_type="connect")
    d.leave("b", ("b", None))
    d.commit("by the classic one", generation_id_or_member_epoch=epoch, member_id=classic)
    d.commit("by the classic one, earlier", generation_id_or_member_epoch=1, member_id=classic)
    d.beat("b", "b", -1)
    d.listed()
    d.wait_for_rebalance("a", classic, epoch)
    d.join("a", classic)


# Which of two equal members gets which half is decided by a hash table in Kafka.
APART_IN = {"between_the_protocols": frozenset({"partitions", "assignment"})}

DIALOGUES: dict[str, Callable[[Dialogue], None]] = {
    one.__name__: one
    for one in (
        nobody_there,
        bad_joins,
        life_of_a_group,
        static_members,
        offsets,
        consumer_refusals,
        life_of_a_consumer_group,
        static_consumers,
        between_the_protocols,
    )
}
