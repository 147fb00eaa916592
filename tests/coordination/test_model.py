"""Random operations and transactions against a model of ZooKeeper's tree that is too simple to be wrong."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.coordination.errors import OperationRefused
from odradek.coordination.store import Check, Create, Delete, NodeStat, Operation, SetData, Store
from odradek.coordination.urls import open_store
from odradek.testing.memory_store import MemoryEnsemble

NAMES = ("a", "b")
PATHS = [f"/{x}" for x in NAMES] + [f"/{x}/{y}" for x in NAMES for y in NAMES] + ["/a/a/a"]
paths = st.sampled_from(PATHS)
versions = st.integers(-1, 2)
operations = st.one_of(
    st.builds(Create, paths, st.binary(max_size=2), st.booleans(), st.booleans()),
    st.builds(SetData, paths, st.binary(max_size=2), versions),
    st.builds(Delete, paths, versions),
    st.builds(Check, paths, versions),
)
# Who does it (one of two sessions), and what in one transaction; None closes that session and opens another.
steps = st.tuples(st.integers(0, 1), st.none() | st.lists(operations, min_size=1, max_size=4))


@dataclass
class ModelNode:
    payload: bytes
    owner: object = None
    version: int = 0
    created: int = 0


@dataclass
class Model:
    """Nodes by path; a refused operation returns the name of the error."""

    nodes: dict[str, ModelNode] = field(default_factory=lambda: {"/": ModelNode(b"")})

    def transact(self, owner: object, transaction: list[Operation]) -> tuple[int, str] | list[str]:
        """Do it on a copy; the copy counts if nothing was refused."""
        copy = Model({path: ModelNode(**vars(node)) for path, node in self.nodes.items()})
        created = []
        for index, operation in enumerate(transaction):
            refusal = copy.apply(owner, operation, created)
            if refusal:
                return index, refusal
        self.nodes = copy.nodes
        return created

    def apply(self, owner: object, operation: Operation, created: list[str]) -> str:
        if isinstance(operation, Create):
            return self.create(owner, operation, created)
        node = self.nodes.get(operation.path)
        if node is None:
            return "NoNode"
        if operation.version not in {-1, node.version}:
            return "BadVersion"
        if isinstance(operation, SetData):
            node.payload, node.version = operation.payload, node.version + 1
        if isinstance(operation, Delete):
            if self.children(operation.path):
                return "NotEmpty"
            del self.nodes[operation.path]
        return ""

    def create(self, owner: object, operation: Create, created: list[str]) -> str:
        parent = self.nodes.get(operation.path.rpartition("/")[0] or "/")
        if parent is None:
            return "NoNode"
        if parent.owner is not None:
            return "NoChildrenForEphemerals"
        path = operation.path + (f"{parent.created:010d}" if operation.sequential else "")
        if path in self.nodes:
            return "NodeExists"
        self.nodes[path] = ModelNode(operation.payload, owner if operation.ephemeral else None)
        parent.created += 1
        created.append(path)
        return ""

    def children(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        below = [
            other.removeprefix(prefix) for other in self.nodes if other.startswith(prefix) and other != path
        ]
        return sorted(name for name in below if "/" not in name)

    def end_session(self, owner: object) -> None:
        self.nodes = {path: node for path, node in self.nodes.items() if node.owner != owner}


async def compare(stores: list[Store], model: Model) -> None:
    """Every session sees the model's tree."""
    for store in stores:
        for path, node in model.nodes.items():
            payload, stat = await store.get(path)
            assert payload == node.payload
            assert stat.version == node.version
            assert (stat.ephemeral_owner or None) == node.owner
            assert stat.num_children == len(model.children(path))
            assert await store.children(path) == model.children(path)


async def act(store: Store, model: Model, transaction: list[Operation], last_zxid: int) -> int:
    expected = model.transact(store.session_id, transaction)
    if isinstance(expected, tuple):
        with pytest.raises(OperationRefused) as refusal:
            await store.multi(transaction)
        assert (refusal.value.operation_index, type(refusal.value).__name__) == expected
        return last_zxid
    results = await store.multi(transaction)
    assert [result for result in results if isinstance(result, str)] == expected
    zxids = {result.mzxid for result in results if isinstance(result, NodeStat)}
    assert len(zxids) <= 1
    assert all(zxid > last_zxid for zxid in zxids)
    return max(zxids, default=last_zxid)


async def run(kind: str, plan: list[tuple[int, list[Operation] | None]]) -> None:
    ensemble = MemoryEnsemble()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "store.db"

        async def open_session() -> Store:
            return ensemble.open_session() if kind == "memory" else await open_store(f"sqlite:{path}")

        stores = [await open_session(), await open_session()]
        model = Model()
        zxid = 0
        for who, transaction in plan:
            if transaction is None:
                await stores[who].close()
                model.end_session(stores[who].session_id)
                stores[who] = await open_session()
            else:
                zxid = await act(stores[who], model, transaction, zxid)
        await compare(stores, model)
        for store in stores:
            await store.close()


@settings(max_examples=100, deadline=None)
@given(plan=st.lists(steps, max_size=30))
def test_memory_does_what_the_model_does(plan: list[tuple[int, list[Operation] | None]]) -> None:
    asyncio.run(run("memory", plan))


@settings(max_examples=20, deadline=None)
@given(plan=st.lists(steps, min_size=3, max_size=30))
def test_sqlite_does_what_the_model_does(plan: list[tuple[int, list[Operation] | None]]) -> None:
    asyncio.run(run("sqlite", plan))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(plan=st.lists(steps, min_size=10, max_size=40))
def test_sqlite_does_what_the_model_does_at_length(plan: list[tuple[int, list[Operation] | None]]) -> None:
    asyncio.run(run("sqlite", plan))
