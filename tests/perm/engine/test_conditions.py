"""Conditions (§2.7): when each holds, and that the index agrees."""

from ipaddress import IPv6Address
from typing import Any

import pytest
from msgspec.structs import force_setattr

from sso.core.net import parse_address
from sso.perm.engine.compiled_application import compile_application
from sso.perm.engine.condition_index import ConditionIndex
from sso.perm.engine.conditions import (
    compare,
    count_nodes,
    deciding_members,
    holds,
    named_users,
    required_attributes,
)
from sso.perm.engine.decode import decode_condition
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.render import as_list
from sso.perm.engine.user_facts import UserFacts
from tests.perm.evaluation import NOW, evaluate, role_giving, user

ANN = {"login": "ann@Example.com", "tags": ["beta"], "purchases": ["full_game"], "ip": "10.1.1.1"}


def holds_for_ann(condition: dict[str, Any], **changes: Any) -> bool:
    decoded, ann = decode_condition(condition), user(ANN | changes)
    assert (ConditionIndex({"r": condition}, lambda _: decoded).find(ann, NOW) == {"r"}) == holds(decoded, ann, NOW)
    return holds(decoded, ann, NOW)


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
    assert holds_for_ann(condition)


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
    assert not holds_for_ann(condition)


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
def test_domain_is_the_part_of_the_login_after_the_last_at(login: str, expected: bool) -> None:
    assert holds_for_ann({"domain": "example.com"}, login=login) is expected


def test_ip_condition_does_not_hold_without_a_client_address() -> None:
    assert not holds_for_ann({"ip": "0.0.0.0/0"}, ip=None)


def test_ipv4_mapped_client_address_matches_an_ipv4_network() -> None:
    assert holds_for_ann({"ip": "10.0.0.0/8"}, ip="::ffff:10.1.1.1")


def test_index_finds_an_ipv4_network_for_a_mapped_address_object() -> None:
    mapped = UserFacts("1", address=IPv6Address("::ffff:10.1.1.1"))
    condition = {"ip": "10.0.0.0/8"}
    assert ConditionIndex({"r": condition}, lambda _: decode_condition(condition)).find(mapped, NOW) == {"r"}


def test_ip_condition_depends_on_the_address_of_the_request() -> None:
    roles = [role_giving("inside", condition={"ip": "10.0.0.0/8"})]
    assert evaluate(roles=roles, user={"ip": "10.1.1.1"}).short() == ["chat.mute"]
    assert evaluate(roles=roles, user={"ip": "8.8.8.8"}).short() == []


def test_malformed_stored_condition_holds_for_no_user() -> None:
    for broken in ({"domain": 1}, {"and": [1]}, {"or": {"a": 1}}, {"ip": "x"}, {"other": 1}, {"everyone": "yes"}):
        roles = [{"name": "r", "meta": {"private_data": {"a": {"value": True}}}}]
        result = evaluate(roles=roles)
        force_setattr(result.application.roles["r"].record, "condition", broken)
        assert evaluate_again(result) == []


def evaluate_again(result: Any) -> list[str]:
    records = [role.record for role in result.application.roles.values()]
    return as_list(
        compute_permissions(compile_application(10, 1, result.application.schema, records), result.facts, result.now)
    )


def test_compare_shows_the_compared_values() -> None:
    condition = decode_condition({"domain": "other.org", "or": [{"tag": "beta"}, {"ip": "8.8.8.8"}]})
    assert [tuple(item) for item in compare(condition, user(ANN), NOW)] == [
        ("domain", "other.org", "example.com", False),
        ("or[0].tag", "beta", True, True),
        ("or[1].ip", "8.8.8.8/32", "10.1.1.1", False),
    ]


@pytest.mark.parametrize(
    ("condition", "members"),
    [
        ({"domain": "example.com"}, ["domain"]),
        ({"domain": "example.com", "tag": "vip"}, ["domain", "tag"]),
        ({"domain": "example.com", "tag": "other"}, ["tag"]),
        ({"domain": "other.example", "tag": "other"}, ["domain"]),
        ({"or": [{"tag": "other"}, {"tag": "vip"}, {"everyone": True}]}, ["or[1].tag"]),
        ({"or": [{"tag": "other"}, {"ip": "192.0.2.0/24"}]}, ["or[0].tag", "or[1].ip"]),
        ({"and": [{"tag": "vip"}, {"or": []}]}, ["and[1].or"]),
        ({"and": [{"tag": "vip"}, {"uid": ["1"]}], "everyone": True}, ["everyone", "and[0].tag", "and[1].uid"]),
        ({"and": [{}]}, ["and[0].condition"]),
        ({}, ["condition"]),
    ],
)
def test_deciding_members_settle_the_outcome(condition: dict[str, Any], members: list[str]) -> None:
    ann = UserFacts("1", "example.com", frozenset({"vip"}), address=parse_address("198.51.100.1"))
    decoded = decode_condition(condition)
    assert list(deciding_members(decoded, ann, NOW)) == members
    outcomes = {item.member: item.holds for item in compare(decoded, ann, NOW)}
    assert {outcomes[member] for member in members} == {holds(decoded, ann, NOW)}


TAG, PURCHASE, DOMAIN = ("tag", "a"), ("purchase", "b"), ("domain", "c.example")
ONE, TWO = ("uid", "1"), ("uid", "2")


@pytest.mark.parametrize(
    ("condition", "attributes"),
    [
        ({"tag": "a"}, {TAG}),
        ({"purchase": "b"}, {PURCHASE}),
        ({"domain": "c.example"}, {DOMAIN}),
        ({"uid": ["1", "2"]}, {ONE, TWO}),
        ({"everyone": True}, None),
        ({}, set()),
        ({"ip": "10.0.0.0/8"}, set()),
        ({"tag": "a", "ip": "10.0.0.0/8"}, set()),
        ({"tag": "a", "and": []}, set()),
        ({"tag": "a", "or": []}, set()),
        ({"tag": "a", "uid": ["1", "2"]}, {ONE, TWO}),  # ids name few users
        ({"everyone": True, "and": [{"everyone": True}, {"tag": "a"}]}, {TAG}),
        ({"or": [{"tag": "a"}, {"uid": ["1"]}]}, {TAG, ONE}),
        ({"or": [{"tag": "a"}, {}]}, {TAG}),
        ({"or": [{"tag": "a"}, {"everyone": True}]}, None),
        ({"or": [{"tag": "a"}, {"purchase": "b"}], "domain": "c.example"}, {DOMAIN}),
    ],
)
def test_attributes_of_which_a_user_must_have_one(condition: Any, attributes: set[tuple[str, str]] | None) -> None:
    assert required_attributes(decode_condition(condition)) == attributes


def test_nodes_and_users_of_a_condition_are_found_in_all_its_parts() -> None:
    condition = decode_condition({"uid": ["1", "2"], "and": [{"uid": ["3"]}, {"tag": "a"}], "or": [{"uid": ["4"]}]})
    assert count_nodes(condition) == 4 + 4
    assert count_nodes(decode_condition({"tag": "a"})) == 1
    assert named_users(condition) == {"1", "2", "3", "4"}
    assert named_users(decode_condition({"tag": "a"})) == frozenset()


def test_explanation_names_purchases_and_everyone() -> None:
    for owned in (["full_game"], []):
        facts = user(ANN | {"purchases": owned})
        compared = compare(decode_condition({"purchase": "full_game", "everyone": True}), facts, NOW)
        assert [(item.member, item.found, item.holds) for item in compared] == [
            ("purchase", bool(owned), bool(owned)),
            ("everyone", True, True),
        ]
