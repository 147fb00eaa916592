"""What is wrong with a directory, as a sentence."""

from __future__ import annotations

import errno
import os

import pytest

from odradek.spark.pipeline.definition.directory_errors import refused_directory
from odradek.spark.pipeline.definition.errors import PipelineError, Place


@pytest.mark.parametrize(
    ("number", "what_to_do"),
    [
        (errno.EACCES, "this user may not use /out/a: change its owner or its permissions"),
        (errno.EPERM, "this user may not use /out/a: change its owner or its permissions"),
        (errno.EROFS, "the file system of /out/a is read-only: mount it for writing"),
        (errno.EEXIST, "/out/a is a file: move it away"),
        (errno.EISDIR, "/out/a is a directory, and should be a file: move it away"),
    ],
)
def test_what_stays_wrong_with_a_directory_is_refused_with_what_to_do(number, what_to_do):
    place = Place("sales.yaml", 1, {"parquet": 9})
    with pytest.raises(PipelineError) as refused, refused_directory("/out", place, "parquet"):
        raise OSError(number, os.strerror(number), "/out/a")
    assert str(refused.value) == (
        f"sales.yaml:9: the directory /out cannot be used, as {what_to_do}, or name another directory"
    )


def test_the_file_in_place_of_a_directory_is_named(tmp_path):
    (tmp_path / "out").write_text("a file")
    below = tmp_path / "out" / "below" / "this"
    for use in (below.read_text, lambda: os.listdir(below), lambda: below.mkdir(parents=True)):
        with pytest.raises(PipelineError) as refused, refused_directory(str(below)):
            use()
        assert f"{below} cannot be used, as {tmp_path}/out is a file: move it away" in str(refused.value)


def test_what_may_pass_is_no_mistake_of_the_pipeline():
    with pytest.raises(OSError, match="No space left"), refused_directory("/out"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/out/a")
