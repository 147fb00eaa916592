from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from log.given_directories import a_log_directory, open_manager
from log.given_logs import read_all
from odradek.common.ids import TopicPartition
from odradek.log.offline.read_only import list_partition
from odradek.log.offline.repair import Cut, apply_repair, plan_repair
from odradek.log.offline.verify.directory import verify
from odradek.log.offline.verify.finding import LogFinding


def findings(path: Path) -> list[LogFinding]:
    found: list[LogFinding] = []
    verify(str(path), found.append)
    return found


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_log_directory(tmp_path_factory.mktemp("repair") / "data", batches=30)


@pytest.fixture
def directory(healthy: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(healthy, tmp_path / "data"))


def flip(path: Path, position: int, mask: int = 1) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= mask
    path.write_bytes(content)


def second_batch(log: Path) -> int:
    return int.from_bytes(log.read_bytes()[8:12], "big") + 12


def test_a_healthy_partition_needs_nothing(directory: Path) -> None:
    assert not plan_repair(str(directory / "orders-0")).has_work


def test_a_plan_changes_nothing(directory: Path) -> None:
    partition = directory / "orders-0"
    flip(sorted(partition.glob("*.log"))[1], 100)
    before = {path: path.read_bytes() for path in partition.iterdir()}
    assert plan_repair(str(partition)).has_work
    assert {path: path.read_bytes() for path in partition.iterdir()} == before


def test_the_log_is_cut_at_the_first_bad_batch_and_the_rest_is_kept(directory: Path) -> None:
    partition = directory / "orders-0"
    _, bad, *later = sorted(partition.glob("*.log"))
    at = second_batch(bad)
    flip(bad, at + 80)
    flip(later[0], 30)
    contents = {path: path.read_bytes() for path in (bad, *later)}

    plan = plan_repair(str(partition))
    assert plan.cut == Cut(int(bad.stem), at, plan.cut.problem if plan.cut else "")
    assert plan.bytes_cut == sum(map(len, contents.values())) - at
    repaired = apply_repair(plan)

    tail = partition / f"{bad.name}.from-{at}.cut"
    assert bad.read_bytes() + tail.read_bytes() == contents[bad]
    for path in later:
        assert (partition / f"{path.name}.from-0.cut").read_bytes() == contents[path]
    assert set(repaired.saved) == {str(path) for path in partition.glob("*.cut")}
    assert findings(directory) == []


def test_a_broker_serves_what_is_left_after_a_repair(directory: Path) -> None:
    manager = open_manager(directory)
    before = [(r.offset, r.value) for r in read_all(manager.logs[TopicPartition("orders", 0)])]
    manager.stop(0)
    bad = sorted((directory / "orders-0").glob("*.log"))[2]
    flip(bad, 30)
    repaired = apply_repair(plan_repair(str(directory / "orders-0")))

    manager = open_manager(directory)
    log = manager.logs[TopicPartition("orders", 0)]

    assert log.log_end_offset == repaired.log_end_offset == int(bad.stem)
    assert [(r.offset, r.value) for r in read_all(log)] == before[: len(read_all(log))]
    assert log.high_watermark == log.log_end_offset
    manager.stop(0)


@pytest.mark.parametrize("kind", ["index", "timeindex", "txnindex"])
def test_a_damaged_index_is_written_again_and_the_log_is_left_alone(directory: Path, kind: str) -> None:
    partition = directory / "orders-0"
    logs = {path: path.read_bytes() for path in partition.glob("*.log")}
    index = sorted(partition.glob(f"*.{kind}"))[1]
    flip(index, index.stat().st_size - 2, 0x70)

    plan = plan_repair(str(partition))
    assert (plan.cut, plan.rebuilt) == (None, [int(index.stem)])
    apply_repair(plan)

    assert findings(directory) == []
    assert {path: path.read_bytes() for path in partition.glob("*.log")} == logs


def test_a_damaged_epoch_checkpoint_is_written_again(directory: Path) -> None:
    epochs = directory / "orders-0" / "leader-epoch-checkpoint"
    before = epochs.read_bytes()
    epochs.write_bytes(before.replace(b"\n3 ", b"\n2 "))
    apply_repair(plan_repair(str(directory / "orders-0")))
    assert epochs.read_bytes() == before


def test_a_batch_with_a_wrong_base_offset_is_cut_itself_not_the_one_after_it(directory: Path) -> None:
    partition = directory / "orders-0"
    log = min(partition.glob("*.log"))
    at = second_batch(log)
    flip(log, at + 6)  # its offset grows by 256

    plan = plan_repair(str(partition))

    assert plan.cut is not None
    assert (plan.cut.base_offset, plan.cut.position) == (0, at)


def test_a_file_that_a_fork_shares_is_replaced_not_changed(directory: Path, tmp_path: Path) -> None:
    partition = directory / "orders-0"
    bad = sorted(partition.glob("*.log"))[1]
    flip(bad, second_batch(bad) + 80)
    (tmp_path / "linked").hardlink_to(bad)
    before = bad.read_bytes()

    apply_repair(plan_repair(str(partition)))

    assert (tmp_path / "linked").read_bytes() == before
    assert len(bad.read_bytes()) < len(before)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(draws=st.data())
def test_after_any_damage_to_a_log_a_repair_leaves_a_healthy_prefix_and_every_byte(
    healthy: Path, tmp_path_factory: pytest.TempPathFactory, draws: st.DataObject
) -> None:
    directory = Path(shutil.copytree(healthy, tmp_path_factory.mktemp("repair") / "data"))
    partition = directory / "orders-0"
    before = b"".join(path.read_bytes() for path in sorted(partition.glob("*.log")))
    log = draws.draw(st.sampled_from(sorted(partition.glob("*.log"))))
    flip(log, draws.draw(st.integers(0, log.stat().st_size - 1)), draws.draw(st.integers(1, 255)))
    damaged = b"".join(path.read_bytes() for path in sorted(partition.glob("*.log")))

    plan = plan_repair(str(partition))
    apply_repair(plan)

    left = b"".join(path.read_bytes() for path in sorted(partition.glob("*.log")))
    cut = b"".join(path.read_bytes() for path in sorted(partition.glob("*.cut"), key=cut_order))
    assert left + cut == damaged
    # An epoch that still fits between its neighbours is believed rather than cut.
    assert before.startswith(left) or plan.rewrites_epochs
    assert findings(directory) == []
    assert list_partition(str(partition)).base_offsets
    shutil.rmtree(directory)


def cut_order(path: Path) -> int:
    return int(path.name[:20])
