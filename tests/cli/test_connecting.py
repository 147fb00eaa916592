"""The messages when the cluster cannot be reached, and how the cluster is named."""

from __future__ import annotations

import socket
import threading

import pytest

from cli.conftest import Cli
from odradek.testing import Cluster


def nobody() -> str:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{unused.getsockname()[1]}"


def test_an_unreachable_cluster_is_reported_at_once_with_the_next_step():
    address = nobody()
    reported = Cli(address).error("topics", "list")
    assert reported.startswith(
        f"Error: no bootstrap server can be reached ({address}: the connection was refused).\n"
    )
    assert "`odradek start` starts one" in reported


def test_a_flag_wins_over_the_environment(cli):
    assert Cli(nobody()).lines("cluster", "id", "--bootstrap-server", cli.bootstrap) == cli.lines(
        "cluster", "id"
    )


def test_an_address_that_is_none_is_a_mistake(cli):
    reported = cli.error("topics", "list", "-b", "localhost:ninety", exit_code=2)
    assert reported == "Error: bootstrap_servers: 'localhost:ninety' is not host:port\n"


@pytest.fixture
def web_server():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            with client:
                client.recv(100)
                client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        yield "{}:{}".format(*server.getsockname())
        thread.join(20)


def test_a_web_server_is_distinguished_from_a_broker(web_server):
    assert "does not respond like a Kafka broker: it uses HTTP" in Cli(web_server).error("topics", "list")


def test_an_advertised_listener_out_of_reach_is_explained_at_once():
    address = nobody()
    listeners = {
        "listeners": f"PLAINTEXT://{address}",
        "advertised.listeners": "PLAINTEXT://inside.invalid:9092",
    }
    with Cluster(listeners):
        reported = Cli(address).error("topics", "create", "orders")
    assert "cannot connect to broker 0 at inside.invalid:9092: the name is not known." in reported
    assert f"The cluster was reached through {address}" in reported
    assert "advertised.listeners" in reported
