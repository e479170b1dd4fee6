"""`sso status` with two real nodes: load, a killed node, an orderly stop."""

import os
import re
import signal
from pathlib import Path
from typing import Any

import orjson
import pytest

from sso.core.encryption import MasterKey
from sso.db.standalone import fetch_value
from sso.nodes.node_list import read_nodes
from tests.kit.nodes import Node, running_nodes
from tests.kit.postgres import execute
from tests.kit.server import until


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
    node.process.wait(60)
    minute_ago = "last_seen - interval '1 minute'"
    execute(node.settings["SSO_DATABASE_URL"], f"UPDATE node_workers SET last_seen = {minute_ago} WHERE node = 'node2'")


def test_status_lists_running_stopped_and_killed_nodes(dsn: str, tmp_path: Path) -> None:
    with running_nodes(tmp_path, dsn, (0, 90), SSO_WORKERS="2") as (first, second):
        _check_killed_worker(dsn, first)
        _check_list(dsn, first, second)


def _check_killed_worker(dsn: str, node: Node) -> None:
    """Its row is deleted by the other workers of the node when it has been silent for a while."""
    victim = node.workers()[0]
    os.kill(victim, signal.SIGKILL)
    execute(dsn, f"UPDATE node_workers SET last_seen = last_seen - interval '2 minutes' WHERE pid = {victim}")

    def is_replaced() -> bool:
        pids = fetch_value(dsn, "SELECT array_agg(pid) FROM node_workers WHERE node = 'node1'")
        return victim not in pids and len(pids) == 2

    assert until(is_replaced)


def _check_list(dsn: str, first: Node, second: Node) -> None:
    listed = status(first)
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
    found = findings(first)
    assert "node2 has sent no heartbeat" in found["silent node"]["detail"]
    assert found["nodes"]["detail"] == "1 running: node1"

    assert first.stop() == 0
    assert [node.name for node in read_nodes(dsn)] == ["node2"]  # a node that was stopped is not listed


def test_node_without_the_master_key_of_the_others_says_so(dsn: str, tmp_path: Path) -> None:
    """Neither a second node with its own key starts, nor does a change of the key begin before all nodes have it."""
    with running_nodes(tmp_path, dsn, (0,)) as (node,):
        old, new = MasterKey.parse(node.settings["SSO_SECRET_KEY"]), MasterKey.generate()
        missing = f"master key {old.id} is missing in SSO_SECRET_KEY, which has {new.id}: add it after the first key"
        with (
            pytest.raises(AssertionError, match=re.escape(missing)),
            running_nodes(tmp_path / "other", dsn, (0,), SSO_SECRET_KEY=new.text()),
        ):
            pass
        node.settings["SSO_SECRET_KEY"] = f"{new.text()},{old.text()}"  # of the command; the node has the old key
        refused = node.sso("key", "reseal", check=False)
        assert refused.returncode == 1
        assert f"the master key {new.id} is missing on node1" in refused.stderr
        node.stop()
        node.start()
        assert "values are sealed with the master key" in node.sso("key", "reseal").stdout
