"""Decoding of stored JSON: a malformed condition holds for no user."""

from typing import Any

import pytest

from sso.perm.engine.conditions import NEVER, holds
from sso.perm.engine.decode import (
    decode_assignments,
    decode_condition,
    decode_group,
    decode_membership,
    decode_own_record,
    decode_project,
)
from sso.perm.engine.records import Assignment
from sso.perm.engine.time_windows import DAYS, FOREVER, MAX_MOMENT, TimeWindow, WeeklyHours
from sso.perm.engine.user_facts import UserFacts

MALFORMED_WINDOWS: list[dict[str, Any]] = [
    {"from": "0"},
    {"from": 1.5},
    {"from": -1},
    {"from": MAX_MOMENT + 1},
    {"from": None, "until": 5},
    {"until": True},
    {"until": -1},
    {"until": "5"},
    {"weekly": []},
    {"weekly": {}},
    {"weekly": False},
    {"weekly": 5},
    {"weekly": ["sat"]},
    {"weekly": [{"days": ["someday"]}]},
    {"weekly": [{"days": 6}]},
    {"weekly": [{"from": "25:00"}]},
    {"weekly": [{"to": 10}]},
    {"from": 0, "zone": "Nowhere/City"},
    {"from": 0, "zone": 5},
]


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
        {"everyone": True, "time": "always"},
        *({"everyone": True, "time": time} for time in MALFORMED_WINDOWS),
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


@pytest.mark.parametrize(
    ("time", "window"),
    [
        ({}, None),
        ({"zone": "Europe/Berlin"}, None),
        ({"from": 0}, TimeWindow(0, FOREVER, (), "UTC")),
        ({"from": MAX_MOMENT}, TimeWindow(MAX_MOMENT, FOREVER, (), "UTC")),
        ({"until": 0}, TimeWindow(0, 0, (), "UTC")),
        ({"weekly": [{}]}, TimeWindow(0, FOREVER, (WeeklyHours(frozenset(range(len(DAYS))), 0, 24 * 60),), "UTC")),
        (
            {
                "from": 5,
                "until": 9,
                "weekly": [{"days": ["tue"], "from": "10:30", "to": "11:00"}],
                "zone": "Asia/Seoul",
            },
            TimeWindow(5, 9, (WeeklyHours(frozenset([1]), 630, 660),), "Asia/Seoul"),
        ),
    ],
)
def test_time_window_has_defaults_for_missing_members(time: dict[str, Any], window: TimeWindow | None) -> None:
    assert decode_condition({"time": time}).time == window


def test_stored_parts_of_a_user_are_kept_and_absent_ones_are_empty() -> None:
    sections = ("public_data", "private_data", "secret_data", "login")
    given = decode_own_record({"roles": ["a"], **{name: {name: {}} for name in sections}})
    assert given.roles == (Assignment("a"),)
    assert [getattr(given, name) for name in sections] == [{name: {}} for name in sections]
    absent = decode_own_record({"roles": None, **dict.fromkeys(sections)})
    assert (absent.roles, [getattr(absent, name) for name in sections]) == ((), [{}] * 4)


def test_stored_parts_of_a_membership_are_kept() -> None:
    levels = {"applications": {"10": ["a"]}, "services": {"11": ["b"]}, "groups": {"g": ["c"]}}
    membership = decode_membership({"project": ["p"], **levels})
    assert membership.project == (Assignment("p"),)
    assert (membership.applications, membership.services) == ({10: (Assignment("a"),)}, {11: (Assignment("b"),)})
    assert membership.groups == {"g": (Assignment("c"),)}


def test_stored_parts_of_a_project_are_kept() -> None:
    lists = {"aliases": ["pp"], "allow": ["g1"], "disallow": ["g2"]}
    project = decode_project({"id": "p", "title": "Title", "removed": 1, **lists})
    assert (project.title, project.removed) == ("Title", True)
    assert (project.aliases, project.allow, project.disallow) == (("pp",), ("g1",), ("g2",))
