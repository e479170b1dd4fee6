"""`sso status` with two real nodes: load, a killed node, an orderly stop."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from sso.core.encryption import MasterKey
from sso.nodes.node_list import read_nodes
from tests.kit.nodes import Node, running_nodes
from tests.kit.postgres import Postgres, execute
from tests.kit.server import until


@pytest.fixture
def nodes(postgres_server: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Node]]:
    folder = tmp_path_factory.mktemp("nodes")
    dsn = postgres_server.fresh()
    with running_nodes(folder, dsn, (0, 90), SSO_WORKERS="2", SSO_GSID_HOLD_S="30") as nodes:
        yield nodes
    postgres_server.drop(dsn)


def status(node: Node) -> dict[str, dict[str, Any]]:
    lines = node.sso("status", "--json").stdout.splitlines()
    return {record["node"]: record for record in map(orjson.loads, lines)}


def findings(node: Node) -> dict[str, dict[str, Any]]:
    lines = node.sso("doctor", "--json", check=False).stdout.splitlines()
    return {record["name"]: record for record in map(orjson.loads, lines)}


def kill(node: Node) -> None:
    """Ends all processes of a node at once, and makes its rows as old as if a minute had passed."""
    assert node.process
    node.process.send_signal(signal.SIGSTOP)  # it must not replace its workers
    for pid in node.workers():
        os.kill(pid, signal.SIGKILL)
    node.process.kill()
    node.process.wait(20)
    minute_ago = "last_seen - interval '1 minute'"
    execute(node.settings["SSO_DATABASE_URL"], f"UPDATE node_workers SET last_seen = {minute_ago} WHERE node = 'node2'")


def test_status_lists_running_stopped_and_killed_nodes(nodes: list[Node]) -> None:
    first, second = nodes
    dsn = first.settings["SSO_DATABASE_URL"]
    listed = status(second)
    assert {name: (record["state"], record["workers"]) for name, record in listed.items()} == {
        "node1": ("running", 2),
        "node2": ("running", 2),
    }
    assert abs(listed["node1"]["clock"]) < 1
    assert abs(listed["node2"]["clock"] - 90) < 1
    assert "clock +" in listed["node2"]["notes"]
    assert "clock of node2" in findings(first)["node clocks"]["detail"]

    kill(second)
    killed = status(first)["node2"]
    assert (killed["state"], killed["workers"]) == ("silent", 0)
    assert killed["seen_s_ago"] >= 60
    assert "node2 has sent no heartbeat" in findings(first)["silent node"]["detail"]
    assert findings(first)["nodes"]["detail"] == "1 running: node1"

    assert first.stop() == 0
    assert [node.name for node in read_nodes(dsn)] == ["node2"]  # a node that was stopped is not listed


def test_killed_worker_is_replaced_in_the_list(nodes: list[Node]) -> None:
    first = nodes[0]
    victim = first.workers()[0]
    os.kill(victim, signal.SIGKILL)
    dsn = first.settings["SSO_DATABASE_URL"]
    # Its row is deleted by the other workers of the node when it has been silent for a while.
    execute(dsn, f"UPDATE node_workers SET last_seen = last_seen - interval '2 minutes' WHERE pid = {victim}")

    def replaced() -> bool:
        (node,) = (node for node in read_nodes(dsn) if node.name == "node1")
        return node.workers == 2 and victim not in first.workers()

    assert until(replaced, 30)


def test_reseal_is_refused_while_a_node_lacks_the_new_master_key(nodes: list[Node]) -> None:
    first = nodes[0]
    old, new = first.settings["SSO_SECRET_KEY"], MasterKey.generate()
    first.settings["SSO_SECRET_KEY"] = f"{new.text()},{old}"  # of the command; the nodes still have the old key
    refused = first.sso("key", "reseal", check=False)
    assert refused.returncode == 1
    assert f"the master key {new.id} is missing on node1, node2" in refused.stderr
