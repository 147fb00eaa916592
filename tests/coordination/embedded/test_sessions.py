"""How processes see each other live."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.coordination.embedded.sessions import (
    OwnSession,
    Peers,
    remove_orphans,
    session_file,
)

TIMEOUT_MS = 1000


@pytest.fixture
def peers(tmp_path: Path) -> Peers:
    return Peers(tmp_path)


def look(peers: Peers, moments_ms: range) -> set[int]:
    dead: set[int] = set()
    for now_ms in moments_ms:
        dead |= peers.find_dead(now_ms)
    return dead


def test_a_session_lives_while_it_holds_its_lock_and_beats(tmp_path: Path, peers: Peers) -> None:
    own = OwnSession(tmp_path, 7, TIMEOUT_MS)
    peers.refresh({7: TIMEOUT_MS})
    for beat in range(50):
        own.beat(beat)
        assert peers.find_dead(100 * beat) == set()
    own.close()
    assert peers.find_dead(5000) == {7}
    peers.close()


def test_a_session_that_stops_beating_is_over_after_its_time_out(tmp_path: Path, peers: Peers) -> None:
    own = OwnSession(tmp_path, 7, TIMEOUT_MS)
    peers.refresh({7: TIMEOUT_MS})
    assert look(peers, range(0, 1001, 20)) == set()
    assert look(peers, range(1020, 1061, 20)) == {7}
    own.close()
    peers.close()


def test_time_in_which_we_were_stopped_ourselves_counts_little(tmp_path: Path, peers: Peers) -> None:
    own = OwnSession(tmp_path, 7, TIMEOUT_MS)
    peers.refresh({7: TIMEOUT_MS})
    peers.find_dead(0)
    assert peers.find_dead(1_000_000) == set()
    own.close()
    peers.close()


def test_others_see_the_file_of_a_session_only_when_it_is_locked(
    tmp_path: Path, peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    lock = fcntl.flock

    def flock(fd: int, operation: int) -> None:
        if operation & fcntl.LOCK_EX:
            remove_orphans(tmp_path, set())
            peers.add_unknown(own_id=1)
            seen.append(len(peers))
        lock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    own = OwnSession(tmp_path, 7, TIMEOUT_MS)
    peers.add_unknown(own_id=1)
    assert (seen, len(peers)) == ([0], 1)
    assert peers.find_dead(0) == set()
    own.close()
    peers.close()


def test_onlookers_do_not_disturb_each_other(tmp_path: Path, peers: Peers) -> None:
    other = Peers(tmp_path)
    OwnSession(tmp_path, 7, TIMEOUT_MS).close()
    for onlooker in (peers, other):
        onlooker.refresh({7: TIMEOUT_MS})
        assert onlooker.find_dead(0) == {7}
        onlooker.close()


def test_a_session_without_a_file_is_over(peers: Peers) -> None:
    peers.refresh({7: TIMEOUT_MS})
    assert peers.find_dead(0) == {7}
    peers.refresh({})
    assert peers.find_dead(1) == set()


def test_files_that_belong_to_no_session_are_removed(tmp_path: Path) -> None:
    for session_id in (1, 2):
        OwnSession(tmp_path, session_id, TIMEOUT_MS).close()
    remove_orphans(tmp_path, known={2})
    assert [path.name for path in tmp_path.iterdir()] == [session_file(tmp_path, 2).name]


def test_the_exit_of_the_owner_is_reported_by_a_descriptor(tmp_path: Path, peers: Peers) -> None:
    owner = start_owner(tmp_path)
    peers.refresh({7: TIMEOUT_MS})
    assert peers.are_watched
    (fd,) = peers.exit_fds()
    assert select.select([fd], [], [], 0)[0] == []
    assert peers.find_dead(0) == set()

    owner.kill()

    assert select.select([fd], [], [], 10)[0] == [fd]
    assert peers.find_dead(0) == {7}
    assert list(peers.exit_fds()) == []
    owner.communicate()
    peers.close()


def test_a_process_of_another_pid_namespace_is_watched_by_its_lock(tmp_path: Path, peers: Peers) -> None:
    """Its pid has another meaning here."""
    own = OwnSession(tmp_path, 7, TIMEOUT_MS)
    with session_file(tmp_path, 7).open("r+b") as file:
        file.seek(20)
        file.write((1).to_bytes(8, "little"))
    peers.refresh({7: TIMEOUT_MS})
    assert not peers.are_watched
    assert peers.find_dead(0) == set()
    own.close()
    assert peers.find_dead(1) == {7}
    peers.close()


def test_a_silent_process_is_killed_if_it_owns_the_lock(tmp_path: Path, peers: Peers) -> None:
    owner = start_owner(tmp_path)
    peers.refresh({7: TIMEOUT_MS})
    for now_ms in range(0, 1001, 100):
        peers.find_dead(now_ms)
    peers.kill_silent({owner.pid})
    assert owner.poll() is None
    assert not peers.has_silent

    peers.find_dead(1100)
    assert peers.has_silent
    peers.kill_silent({owner.pid + 1})
    assert owner.poll() is None

    peers.kill_silent({owner.pid})
    owner.communicate(timeout=10)
    assert owner.returncode == -signal.SIGKILL
    peers.close()


def test_a_session_of_this_process_is_never_killed(tmp_path: Path, peers: Peers) -> None:
    own = OwnSession(tmp_path, 7, TIMEOUT_MS)
    peers.refresh({7: TIMEOUT_MS})
    for now_ms in range(0, 2000, 100):
        peers.find_dead(now_ms)
    assert peers.has_silent
    peers.kill_silent({os.getpid()})
    own.close()
    peers.close()


def start_owner(directory: Path) -> subprocess.Popen[bytes]:
    """Session 7 in another process."""
    script = (
        "import sys, time; from pathlib import Path;"
        "from odradek.coordination.embedded.sessions import OwnSession;"
        f"own = OwnSession(Path({str(directory)!r}), 7, {TIMEOUT_MS}); print(flush=True); time.sleep(600)"
    )
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"\n"
    return owner


def test_a_file_that_was_taken_for_an_orphan_is_created_again(tmp_path: Path, peers: Peers) -> None:
    own = OwnSession(tmp_path, 7, TIMEOUT_MS)
    session_file(tmp_path, 7).unlink()
    own.keep_file()
    peers.refresh({7: TIMEOUT_MS})
    assert peers.find_dead(0) == set()
    own.close()
    peers.close()


def test_a_session_that_begins_is_found_by_its_file(tmp_path: Path, peers: Peers) -> None:
    own, other = OwnSession(tmp_path, 7, TIMEOUT_MS), OwnSession(tmp_path, 8, TIMEOUT_MS)
    remove_orphans(tmp_path, known={7})
    peers.add_unknown(own_id=7)
    assert len(peers) == 1
    assert peers.shortest_timeout_ms == TIMEOUT_MS
    for session in (own, other):
        session.close()
    peers.close()
