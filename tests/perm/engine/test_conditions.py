"""Conditions (§2.7): when each one holds. Members combine with AND, and what asks for nothing holds for nobody."""

from ipaddress import IPv6Address
from typing import Any

import pytest

from sso.perm.engine.compiled_application import compile_application
from sso.perm.engine.condition_index import ConditionIndex
from sso.perm.engine.conditions import compare, holds
from sso.perm.engine.decode import decode_condition
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.render import as_list
from sso.perm.engine.user_facts import UserFacts
from tests.perm.world import giving, user, world

ANN = {"login": "ann@Example.com", "tags": ["beta"], "purchases": ["full_game"], "ip": "10.1.1.1"}


def says(condition: dict[str, Any], **somebody: Any) -> bool:
    read, found = decode_condition(condition), user(ANN | somebody)
    assert (ConditionIndex({"r": condition}, lambda _: read).find(found) == {"r"}) == holds(read, found)
    return holds(read, found)


@pytest.mark.parametrize(
    "condition",
    [
        {"domain": "example.com"},
        {"domain": "EXAMPLE.COM"},
        {"uid": ["7", "1001"]},
        {"tag": "beta"},
        {"purchase": "full_game"},
        {"ip": "10.0.0.0/8"},
        {"ip": "10.1.1.1"},
        {"ip": "::ffff:10.0.0.0/104"},
        {"everyone": True},
        {"everyone": False, "tag": "beta"},
        {"and": [{"tag": "beta"}, {"domain": "example.com"}]},
        {"or": [{"tag": "alpha"}, {"domain": "example.com"}]},
        {"or": [{"tag": "alpha"}, {"everyone": True}]},
        {"and": [{"or": [{"and": [{"or": [{"tag": "beta"}]}]}]}]},
        {"domain": "example.com", "tag": "beta", "ip": "10.0.0.0/8", "or": [{"uid": ["1001"]}]},
    ],
)
def test_condition_holds(condition: dict[str, Any]) -> None:
    assert says(condition)


@pytest.mark.parametrize(
    "condition",
    [
        {},
        {"and": []},
        {"or": []},
        {"everyone": False},
        {"uid": []},
        {"and": [{}]},
        {"or": [{}]},
        {"and": [{"everyone": False}]},
        {"and": [{"tag": "beta"}, {}]},
        {"everyone": True, "or": []},
        {"everyone": True, "and": []},
        {"everyone": True, "tag": "alpha"},
        {"domain": "example.com", "tag": "alpha"},
        {"and": [{"tag": "beta"}, {"tag": "alpha"}]},
        {"or": [{"tag": "alpha"}, {"uid": ["100"]}]},
        {"domain": "xample.com"},
        {"ip": "10.1.1.2"},
        {"ip": "::/0"},
        {"ip": "0.0.0.0/5", "domain": "example.com"},
    ],
)
def test_condition_does_not_hold(condition: dict[str, Any]) -> None:
    assert not says(condition)


@pytest.mark.parametrize(
    ("login", "expected"),
    [
        ("x@example.com", True),
        ("x@EXAMPLE.com", True),
        ("a@b@example.com", True),
        ("x@evilexample.com", False),
        ("x@example.com.evil", False),
        ("x@sub.example.com", False),
        ("example.com@evil.org", False),
        ("example.com", False),
        ("x@", False),
    ],
)
def test_domain_is_the_whole_part_after_the_last_at(login: str, expected: bool) -> None:
    assert says({"domain": "example.com"}, login=login) is expected


def test_without_a_client_address_no_ip_condition_holds() -> None:
    assert not says({"ip": "0.0.0.0/0"}, ip=None)


def test_mapped_client_address_is_the_ipv4_address() -> None:
    assert says({"ip": "10.0.0.0/8"}, ip="::ffff:10.1.1.1")


def test_mapped_client_address_that_nobody_has_unmapped_yet() -> None:
    mapped = UserFacts("1", address=IPv6Address("::ffff:10.1.1.1"))
    condition = {"ip": "10.0.0.0/8"}
    assert ConditionIndex({"r": condition}, lambda _: decode_condition(condition)).find(mapped) == {"r"}


def test_an_answer_follows_the_address_of_its_own_request() -> None:
    roles = [giving("inside", condition={"ip": "10.0.0.0/8"})]
    assert world(roles=roles, user={"ip": "10.1.1.1"}).short() == ["chat.mute"]
    assert world(roles=roles, user={"ip": "8.8.8.8"}).short() == []


def test_stored_condition_that_cannot_be_understood_opens_nothing() -> None:
    for broken in ({"domain": 1}, {"and": [1]}, {"or": {"a": 1}}, {"ip": "x"}, {"other": 1}, {"everyone": "yes"}):
        roles = [{"name": "r", "meta": {"private_data": {"a": {"value": True}}}}]
        made = world(roles=roles)
        object.__setattr__(made.application.roles["r"].record, "condition", broken)
        assert world_again(made) == []


def world_again(made: Any) -> list[str]:
    records = [role.record for role in made.application.roles.values()]
    return as_list(
        compute_permissions(compile_application(10, 1, made.application.schema, records), made.facts, made.now)
    )


def test_comparisons_show_the_value_compared() -> None:
    condition = decode_condition({"domain": "other.org", "or": [{"tag": "beta"}, {"ip": "8.8.8.8"}]})
    assert [tuple(item) for item in compare(condition, user(ANN))] == [
        ("domain", "other.org", "example.com", False),
        ("or[0].tag", "beta", True, True),
        ("or[1].ip", "8.8.8.8/32", "10.1.1.1", False),
    ]
