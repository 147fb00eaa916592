"""`odradek doctor` on a broker and on files."""

from __future__ import annotations

import shutil

import pytest

from odradek.testing import Cluster


def test_a_cluster_without_problems(cli):
    assert cli.lines("doctor") == [f"no problems: the cluster at {cli.bootstrap}"]
    assert cli.objects("doctor") == []


def test_no_cluster_at_all(cli):
    assert "no bootstrap server can be reached" in cli.error("doctor", "-b", "127.0.0.1:1")


@pytest.fixture
def data(tmp_path):
    """The directory of a broker that was stopped."""
    with Cluster(data_dir=tmp_path / "data"):
        pass
    return tmp_path / "data"


def problems(cli, *arguments):
    result = cli.run("doctor", *arguments, exit_code=1)
    return [line for line in result.stdout.splitlines() if not line.startswith("    ")]


def test_a_data_directory_without_problems(cli, data):
    assert cli.lines("doctor", "--data-dir", str(data)) == [f"no problems: {data}"]


def test_a_directory_that_is_not_there(cli, tmp_path):
    (found,) = problems(cli, "--data-dir", str(tmp_path / "none"))
    assert found.endswith("none does not exist")


def test_a_store_that_was_lost(cli, data):
    (data / "coordination.db").unlink()
    (found,) = problems(cli, "--data-dir", str(data))
    assert found == f"error: the store {data}/coordination.db does not exist"


def test_a_store_that_is_damaged(cli, data):
    (data / "coordination.db").write_bytes(b"\xa5" * 8192)
    (found,) = problems(cli, "--data-dir", str(data))
    assert found.endswith("coordination.db cannot be read")


def test_the_store_of_another_cluster(cli, data, tmp_path):
    with Cluster(data_dir=tmp_path / "other"):
        pass
    shutil.copy(tmp_path / "other" / "coordination.db", data / "coordination.db")
    (found,) = problems(cli, "--data-dir", str(data))
    assert found.endswith("belongs to another cluster")


def test_the_directories_of_several_brokers_with_the_store_beside_them(cli, data, tmp_path):
    several = tmp_path / "several"
    several.mkdir()
    (data / "coordination.db").rename(several / "coordination.db")
    shutil.copytree(data, several / "broker-0")
    assert cli.lines("doctor", "--data-dir", str(several)) == [f"no problems: {several}"]


def test_a_configuration_with_the_wrong_id(cli, data, tmp_path):
    config = tmp_path / "server.properties"
    config.write_text(f"log.dirs={data}\nbroker.id=4\n")
    (found,) = problems(cli, str(config))
    assert found == "error: the log directories belong to broker 0, not 4"


def test_a_configuration_that_is_not_valid(cli, tmp_path):
    config = tmp_path / "server.properties"
    config.write_text("num.partitions=many\n")
    (found,) = problems(cli, str(config))
    assert found == f"error: {config} is not valid"
