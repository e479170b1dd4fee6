"""Decoding of stored JSON: a malformed condition holds for no user."""

from typing import Any

import pytest

from sso.perm.engine.conditions import NEVER, holds
from sso.perm.engine.decode import decode_assignments, decode_condition, decode_group, decode_project
from sso.perm.engine.records import Assignment
from sso.perm.engine.user_facts import UserFacts


@pytest.mark.parametrize(
    "stored",
    [
        None,
        [],
        "everyone",
        {"everyone": "true"},
        {"everyone": 1},
        {"domain": ""},
        {"domain": None},
        {"uid": "1001"},
        {"uid": [1001]},
        {"tag": ["a"]},
        {"tag": ""},
        {"ip": "10.0.0.0/33"},
        {"ip": 1},
        {"and": {"everyone": True}},
        {"or": [{"everyone": True}, {"unknown": 1}]},
        {"everyone": True, "unknown": 1},
    ],
)
def test_malformed_condition_is_never(stored: Any) -> None:
    assert decode_condition(stored) == NEVER
    assert not holds(decode_condition(stored), UserFacts("1001", domain=""), 0)


def test_ip_in_a_group_condition_is_never() -> None:
    item = {"title": "t", "condition": {"or": [{"everyone": True}, {"ip": "0.0.0.0/0"}]}}
    assert [item.condition for item in decode_group("a" * 24, [], [item]).conditions] == [NEVER]


def test_assignments_are_names_or_objects() -> None:
    stored = ["a", {"name": "b", "expired": 5}, {"name": "c", "ttl": None}]
    assert decode_assignments(stored) == (Assignment("a"), Assignment("b", 5), Assignment("c"))


def test_project_has_defaults_for_missing_fields() -> None:
    project = decode_project({"id": "p", "settings": {"allowed_domains": ["EXAMPLE.com"], "services": {"10": {}}}})
    assert (project.allowed_domains, project.services) == (frozenset(["example.com"]), {10: ()})
    assert (project.removed, project.allow, project.membership.project) == (False, (), ())
