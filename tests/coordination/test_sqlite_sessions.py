"""How processes see each other live."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.coordination.sqlite_sessions import (
    LONGEST_TICK_NS,
    OwnSession,
    Peers,
    remove_orphans,
    session_file,
)

TIMEOUT_MS = 1000


@pytest.fixture
def peers(tmp_path: Path) -> Peers:
    return Peers(tmp_path, longest_step_ms=100)


def look(peers: Peers, moments_ms: range) -> set[int]:
    dead: set[int] = set()
    for now_ms in moments_ms:
        dead |= peers.find_dead(now_ms)
    return dead


def test_a_session_lives_while_it_holds_its_lock_and_beats(tmp_path: Path, peers: Peers) -> None:
    own = OwnSession(tmp_path, 7)
    peers.refresh({7: TIMEOUT_MS})
    for beat in range(50):
        own.beat(beat)
        assert peers.find_dead(100 * beat) == set()
    own.close()
    assert peers.find_dead(5000) == {7}
    peers.close()


def test_a_session_that_stops_beating_is_over_after_its_time_out(tmp_path: Path, peers: Peers) -> None:
    own = OwnSession(tmp_path, 7)
    peers.refresh({7: TIMEOUT_MS})
    assert look(peers, range(0, 1001, 20)) == set()
    assert look(peers, range(1020, 1061, 20)) == {7}
    own.close()
    peers.close()


def test_time_in_which_we_were_stopped_ourselves_counts_little(tmp_path: Path, peers: Peers) -> None:
    own = OwnSession(tmp_path, 7)
    peers.refresh({7: TIMEOUT_MS})
    peers.find_dead(0)
    assert peers.find_dead(1_000_000) == set()
    own.close()
    peers.close()


def test_onlookers_do_not_disturb_each_other(tmp_path: Path, peers: Peers) -> None:
    other = Peers(tmp_path, longest_step_ms=100)
    OwnSession(tmp_path, 7).close()
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
        OwnSession(tmp_path, session_id).close()
    remove_orphans(tmp_path, known={2})
    assert [path.name for path in tmp_path.iterdir()] == [session_file(tmp_path, 2).name]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[OwnSession]:
    """Our session, begun a while ago."""
    session = OwnSession(tmp_path, 7)
    age(tmp_path)
    yield session
    session.close()


def age(directory: Path) -> None:
    """Let the last change of a directory be one that lies back by some ticks of the clock."""
    changed = os.stat(directory)
    os.utime(directory, ns=(changed.st_atime_ns, changed.st_mtime_ns - 2 * LONGEST_TICK_NS))


def test_whoever_is_alone_needs_to_look_once(peers: Peers, own: OwnSession) -> None:
    assert [peers.may_be_others(own) for _ in range(3)] == [True, False, False]


def test_a_file_of_another_is_a_reason_to_look_until_it_is_gone(
    tmp_path: Path, peers: Peers, own: OwnSession
) -> None:
    peers.may_be_others(own)

    other = OwnSession(tmp_path, 8)
    age(tmp_path)
    assert [peers.may_be_others(own) for _ in range(3)] == [True, True, True]

    other.remove()
    age(tmp_path)
    assert [peers.may_be_others(own) for _ in range(3)] == [True, False, False]


def test_a_change_of_just_now_is_not_trusted_to_be_the_last(
    tmp_path: Path, peers: Peers, own: OwnSession
) -> None:
    OwnSession(tmp_path, 8).remove()
    assert [peers.may_be_others(own) for _ in range(3)] == [True, True, True]


def test_a_directory_that_is_gone_is_a_reason_to_look(tmp_path: Path, peers: Peers, own: OwnSession) -> None:
    peers.may_be_others(own)
    shutil.rmtree(tmp_path)
    assert [peers.may_be_others(own) for _ in range(2)] == [True, True]
