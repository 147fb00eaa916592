"""The admin clients: `AsyncAdmin` for code on a loop, `Admin` for code without one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Never, ParamSpec, Self, TypeVar, Unpack, cast

from odradek.client.admin.acls import AclAdmin
from odradek.client.admin.cluster import ClusterAdmin
from odradek.client.admin.configs import ConfigAdmin
from odradek.client.admin.group_offsets import GroupOffsetAdmin
from odradek.client.admin.groups import GroupAdmin
from odradek.client.admin.log_dirs import LogDirAdmin
from odradek.client.admin.offsets import OffsetAdmin
from odradek.client.admin.partitions import PartitionAdmin
from odradek.client.admin.producers import ProducerAdmin
from odradek.client.admin.topics import TopicAdmin
from odradek.client.admin.transactions import TransactionAdmin
from odradek.client.config import ClientConfig, check_keywords_only, from_keywords
from odradek.client.errors import ClientClosed
from odradek.client.network.background_loop import BackgroundLoop
from odradek.client.settings import ClientSettings

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class AsyncAdmin(
    TopicAdmin,
    ConfigAdmin,
    OffsetAdmin,
    GroupAdmin,
    GroupOffsetAdmin,
    ClusterAdmin,
    LogDirAdmin,
    ProducerAdmin,
    PartitionAdmin,
    TransactionAdmin,
    AclAdmin,
):
    """Administers a cluster from a running loop.

    async with AsyncAdmin(bootstrap_servers="localhost:9092") as admin:
        await admin.create_topic("orders", num_partitions=6)

    Nothing is connected before the first call. A call about one resource raises a broker's error; a call
    about several has errors among its results.
    """

    def __init__(self, *misplaced: Never, **settings: Unpack[ClientSettings]) -> None:
        check_keywords_only("Admin", misplaced)
        super().__init__(from_keywords(ClientConfig, settings))

    async def connect(self) -> None:
        """Check now whether a broker can be reached, without retries; calls connect by themselves.

        Also at its advertised address, which every later call uses.
        """
        await self.brokers.refresh()
        await self.brokers.reach_one()

    async def close(self) -> None:
        """Close the connections; the client cannot be used any more."""
        self._is_closed = True
        if self._made is not None:
            await self._made.close()

    async def __aenter__(self) -> Self:
        if self._is_closed:
            raise ClientClosed("admin client")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _on_the_loop(
    method: Callable[Concatenate[AsyncAdmin, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[Admin, Parameters], Result]:
    """A method of `AsyncAdmin` as one of `Admin`: same arguments, same result, but it waits."""

    @functools.wraps(method)
    def waiting(self: Admin, *arguments: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        return self._background.call(method(self._admin, *arguments, **keywords))

    return cast("Callable[Concatenate[Admin, Parameters], Result]", waiting)


class Admin:
    """Administers a cluster from any thread.

    with Admin(bootstrap_servers="localhost:9092") as admin:
        admin.create_topic("orders", num_partitions=6)
    """

    def __init__(self, *misplaced: Never, **settings: Unpack[ClientSettings]) -> None:
        self._admin = AsyncAdmin(*misplaced, **settings)
        self._background = BackgroundLoop("admin client")

    @property
    def config(self) -> ClientConfig:
        """The settings in use."""
        return self._admin.config

    connect = _on_the_loop(AsyncAdmin.connect)

    create_topics = _on_the_loop(AsyncAdmin.create_topics)
    create_topic = _on_the_loop(AsyncAdmin.create_topic)
    delete_topics = _on_the_loop(AsyncAdmin.delete_topics)
    delete_topic = _on_the_loop(AsyncAdmin.delete_topic)
    list_topics = _on_the_loop(AsyncAdmin.list_topics)
    describe_topics = _on_the_loop(AsyncAdmin.describe_topics)
    describe_topic = _on_the_loop(AsyncAdmin.describe_topic)
    create_partitions = _on_the_loop(AsyncAdmin.create_partitions)

    describe_configs = _on_the_loop(AsyncAdmin.describe_configs)
    alter_configs = _on_the_loop(AsyncAdmin.alter_configs)
    list_config_resources = _on_the_loop(AsyncAdmin.list_config_resources)

    list_offsets = _on_the_loop(AsyncAdmin.list_offsets)
    delete_records = _on_the_loop(AsyncAdmin.delete_records)

    list_groups = _on_the_loop(AsyncAdmin.list_groups)
    describe_groups = _on_the_loop(AsyncAdmin.describe_groups)
    describe_group = _on_the_loop(AsyncAdmin.describe_group)
    delete_groups = _on_the_loop(AsyncAdmin.delete_groups)
    delete_group = _on_the_loop(AsyncAdmin.delete_group)
    list_group_offsets = _on_the_loop(AsyncAdmin.list_group_offsets)
    alter_group_offsets = _on_the_loop(AsyncAdmin.alter_group_offsets)
    delete_group_offsets = _on_the_loop(AsyncAdmin.delete_group_offsets)

    describe_cluster = _on_the_loop(AsyncAdmin.describe_cluster)
    api_versions = _on_the_loop(AsyncAdmin.api_versions)
    describe_log_dirs = _on_the_loop(AsyncAdmin.describe_log_dirs)
    alter_replica_log_dirs = _on_the_loop(AsyncAdmin.alter_replica_log_dirs)
    describe_producers = _on_the_loop(AsyncAdmin.describe_producers)

    elect_leaders = _on_the_loop(AsyncAdmin.elect_leaders)
    alter_partition_reassignments = _on_the_loop(AsyncAdmin.alter_partition_reassignments)
    list_partition_reassignments = _on_the_loop(AsyncAdmin.list_partition_reassignments)
    list_transactions = _on_the_loop(AsyncAdmin.list_transactions)
    describe_transactions = _on_the_loop(AsyncAdmin.describe_transactions)
    abort_transaction = _on_the_loop(AsyncAdmin.abort_transaction)
    force_terminate_transaction = _on_the_loop(AsyncAdmin.force_terminate_transaction)

    create_acls = _on_the_loop(AsyncAdmin.create_acls)
    describe_acls = _on_the_loop(AsyncAdmin.describe_acls)
    delete_acls = _on_the_loop(AsyncAdmin.delete_acls)

    def close(self) -> None:
        """Close the connections and end the thread; the client cannot be used any more."""
        self._background.close(self._admin.close())

    def __enter__(self) -> Self:
        self._background.check()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
