"""A directory that no log can be kept in: the sentence says what is in the way and what to do."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from odradek.common.errors import ConfigError
from odradek.log.directories.log_dir_errors import UnusableDirectory, check_different, make_directory

OR_ANOTHER = "or name another directory in log.dirs (--data-dir)"


def refusal(path: Path) -> str:
    with pytest.raises(UnusableDirectory) as refused:
        make_directory(str(path))
    return str(refused.value)


def test_a_directory_is_made_with_those_above_it_and_may_be_there_already(tmp_path: Path) -> None:
    for _ in range(2):
        make_directory(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()


def test_a_file_in_its_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    reported = refusal(tmp_path / "file")
    assert reported == f"{tmp_path}/file is a file, not a directory; move it away, {OR_ANOTHER}"


def test_a_file_above_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    path = tmp_path / "file" / "a" / "b"
    assert refusal(path).startswith(f"{path}: {tmp_path}/file is a file, not a directory")


def test_a_link_to_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert refusal(tmp_path / "link").startswith(f"{tmp_path}/link is a link to nowhere")


@pytest.mark.parametrize(
    ("number", "reported"),
    [
        (errno.EACCES, "this user may not write there; change its owner or its permissions"),
        (errno.EPERM, "this user may not write there; change its owner or its permissions"),
        (errno.EROFS, "its file system is read-only; mount it for writing"),
        (errno.ENOSPC, "its disk is full; free some space"),
        (errno.EDQUOT, "the quota of this user is used up; free some space"),
        (errno.EIO, "Input/output error; check its disk"),
    ],
)
def test_each_refusal_of_the_system_has_its_remedy(tmp_path: Path, number: int, reported: str) -> None:
    problem = UnusableDirectory(str(tmp_path), OSError(number, os.strerror(number)))
    assert str(problem) == f"{tmp_path}: {reported}, {OR_ANOTHER}"
    assert problem.errno == number


def test_two_names_of_one_directory_are_distinguished_from_two_directories(tmp_path: Path) -> None:
    one, two, link = (str(tmp_path / name) for name in ("one", "two", "link"))
    os.mkdir(one)
    os.symlink(one, link)
    check_different([one, two])
    for other in (link, f"{one}/.", one):
        with pytest.raises(ConfigError, match=f"{one} and {other} are one directory; name it once"):
            check_different([two, one, other])
