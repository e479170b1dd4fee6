"""What `sso status` and `sso doctor` say about nodes."""

import pytest
from msgspec.structs import replace

from sso.nodes.node_list import Node, notes_on
from sso.nodes.problems import NodeProblem, node_problems

WEB1 = Node(
    name="web1",
    is_silent=False,
    age_s=2.0,
    uptime_s=100.0,
    workers=2,
    expected_workers=2,
    held_polls=3,
    sockets=4,
    clock_offset_s=0.1,
    hosts=("one",),
    versions=("1.0",),
    schema_versions=("0018",),
    base_urls=("https://sso.example.com",),
    master_keys=(("aa",),),
)
WEB2 = replace(WEB1, name="web2", hosts=("two",))


def only_problem(*nodes: Node) -> NodeProblem:
    (problem,) = node_problems(nodes)
    assert problem.advice
    return problem


def test_equal_nodes_have_no_problems() -> None:
    assert list(node_problems([WEB1, WEB2])) == []
    assert notes_on(WEB1, [WEB1, WEB2]) == []


@pytest.mark.parametrize(
    ("changes", "name", "detail", "note", "warning"),
    [
        ({"is_silent": True, "age_s": 70.0, "workers": 0}, "silent node", "web2 has sent no heartbeat for 70 s",
         "silent for 70 s", True),
        ({"workers": 1}, "workers", "web2 has 1 of 2 workers", "1 of 2 workers", True),
        ({"clock_offset_s": -2.0}, "node clocks", "by -2.0 s", "clock -2.0 s", True),
        ({"versions": ("0.9",)}, "node versions", "0.9 (web2); 1.0 (web1, web3)",
         "another version than other nodes", True),
        ({"base_urls": ("http://x",)}, "base URLs of nodes", "http://x (web2)",
         "another base URL than other nodes", False),
        ({"master_keys": (("bb",),)}, "master keys of nodes", "aa (web1, web3); bb (web2)",
         "another master key than other nodes", False),
        ({"hosts": ("two", "three")}, "node names", "two and three are both named web2",
         "same name on two and three", False),
    ],
)  # fmt: skip
def test_problem_of_one_node_is_named_with_advice(
    changes: dict[str, object], name: str, detail: str, note: str, warning: bool
) -> None:
    web2 = replace(WEB2, **changes)
    nodes = [WEB1, web2, replace(WEB1, name="web3")]
    problem = only_problem(*nodes)
    assert (problem.name, problem.warning) == (name, warning)
    assert detail in problem.detail
    assert notes_on(web2, nodes) == [note]
    assert notes_on(WEB1, nodes) == []


def test_change_of_the_master_key_is_a_warning_while_every_node_has_both_keys() -> None:
    problem = only_problem(
        replace(WEB1, master_keys=(("bb", "aa"),)),
        replace(WEB2, master_keys=(("aa", "bb"),)),
    )
    assert problem.warning
    assert "sso key reseal" in problem.advice


def test_key_that_one_node_lacks_is_a_failure() -> None:
    problem = only_problem(replace(WEB1, master_keys=(("bb", "aa"),)), WEB2)
    assert not problem.warning
    assert "OLD,NEW" in problem.advice


def test_silent_nodes_are_not_compared_with_the_others() -> None:
    old = replace(WEB2, is_silent=True, versions=("0.9",), base_urls=("http://x",), master_keys=(("bb",),))
    assert only_problem(WEB1, old).name == "silent node"
