"""The rights over the whole service that protect a user from callers without them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sso.core.net import Address, parse_address
from sso.perm.engine.compiled_application import CompiledApplication, compile_application
from sso.perm.engine.decode import decode_assignments
from sso.perm.engine.effective_permissions import compute_permissions
from sso.perm.engine.facts import PermissionFacts
from sso.perm.engine.records import OwnRecord, RoleRecord, Schema
from sso.perm.engine.reserved_names import CENTRAL_APPLICATION_ID
from sso.perm.engine.rights import Rights
from sso.perm.engine.service_rights import ServiceRights, compute_service_rights
from sso.perm.engine.user_facts import UserFacts
from tests.kit.long_tests import PERMISSION_EXAMPLES
from tests.perm.evaluation import NOW

STAFF = UserFacts("1001", "studio.example", frozenset({"staff"}), frozenset({"game"}))
NETWORKS = ("10.0.0.0/30", "10.0.0.0/31", "10.0.0.3", "10.0.0.4/30", "0.0.0.0/0", "::/0", "fd00::/127", "fd00::1")
# One of each set of addresses that no network above divides.
ADDRESSES = (
    *(None, "10.0.0.0", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.8", "9.255.255.255", "::ffff:10.0.0.3"),
    *("::", "::1:0:0:0", "fd00::", "fd00::1", "fd00::2"),
)
VALUES = st.sampled_from((True, True, 1, "yes", 2.5, False, None, 0, ""))
RULES = st.dictionaries(st.sampled_from(("a", "b", "c")), VALUES.map(lambda value: {"value": value}), max_size=3)


def _nested(parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    members = st.fixed_dictionaries(
        {}, optional={"and": st.lists(parts, max_size=3), "or": st.lists(parts, max_size=3), **MEMBERS}
    )
    return members.filter(lambda condition: len(condition) < 4)


MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "ip": st.sampled_from(NETWORKS),
    "tag": st.sampled_from(("staff", "other")),
    "purchase": st.sampled_from(("game", "other")),
    "domain": st.sampled_from(("studio.example", "other.example")),
    "uid": st.sampled_from((["1001"], ["1002"], [])),
    "everyone": st.booleans(),
}
CONDITIONS = st.recursive(st.fixed_dictionaries({}, optional=MEMBERS), _nested, max_leaves=6)


@st.composite
def roles(draw: st.DrawFn) -> list[RoleRecord]:
    names = ("root", "default", "r1", "r2", "r3")
    return [
        RoleRecord(
            name,
            {"private_data": draw(RULES)},
            default=draw(st.integers(0, 5)) == 0,
            condition=draw(CONDITIONS) if draw(st.integers(0, 3)) else {},
        )
        for name in names
        if draw(st.booleans())
    ]


def central(records: list[RoleRecord], rules: dict[str, Any] | None = None) -> CompiledApplication:
    return compile_application(CENTRAL_APPLICATION_ID, 1, Schema(private_data=rules or {}), records)


def rights_at(application: CompiledApplication, facts: PermissionFacts, address: Address | None) -> set[str]:
    """The rules of the user at this address, and ``root``."""
    there = replace(facts, user=replace(facts.user, address=address))
    rights = Rights(compute_permissions(application, there, NOW))
    return set(rights.root_rules) | ({"root"} if rights.is_root else set())


@settings(max_examples=PERMISSION_EXAMPLES // 2, deadline=None)
@given(roles(), RULES, RULES, st.booleans())
def test_rights_are_those_that_the_user_has_at_some_address_and_a_user_without_attributes_has_not(
    records: list[RoleRecord], schema: dict[str, Any], own: dict[str, Any], is_assigned: bool
) -> None:
    application = central(records, schema)
    # An assigned role with a condition counts everywhere, which this test leaves to the next one.
    assigned = [record.name for record in records if is_assigned and not record.condition]
    facts = PermissionFacts(STAFF, OwnRecord(decode_assignments(assigned), private_data=own))
    expected: set[str] = set()
    for text in ADDRESSES:
        address = None if text is None else parse_address(text)
        expected |= rights_at(application, facts, address) - rights_at(
            application, PermissionFacts(UserFacts("")), address
        )
    rights = compute_service_rights(application, facts, NOW)
    assert rights.rules | ({"root"} if rights.is_root else set()) == expected


@pytest.mark.parametrize(
    "condition",
    [
        {"tag": "staff"},
        {"ip": "10.0.0.0/8", "tag": "staff"},
        {"or": [{"and": [{"ip": "10.0.0.0/8"}, {"tag": "staff"}]}, {"ip": "192.0.2.0/24"}]},
        {"or": [{"ip": "10.0.0.0/8", "uid": ["1001"]}, {"ip": "10.0.0.0/9"}, {"ip": "10.128.0.0/10"}]},
        {"tag": "staff", "time": {"from": NOW + 100}},
        {"or": [{"tag": "staff"}, {"time": {"from": NOW - 100}, "uid": ["7"]}]},
    ],
)
def test_user_who_meets_the_condition_of_root_at_more_addresses_than_everyone_has_root(condition: Any) -> None:
    rights = compute_service_rights(central([RoleRecord("root", condition=condition)]), PermissionFacts(STAFF), NOW)
    assert rights.is_root


@pytest.mark.parametrize(
    "condition",
    [
        {"ip": "10.0.0.0/8"},
        {"time": {"from": NOW - 100}},
        {"tag": "other", "time": {"from": NOW - 100}},
        {"or": [{"ip": "10.0.0.0/8"}, {"ip": "10.1.0.0/16", "tag": "staff"}]},
        {"or": [{"ip": "10.0.0.0/9"}, {"ip": "10.128.0.0/9"}, {"ip": "10.0.0.0/8", "tag": "staff"}]},
    ],
)
def test_user_who_meets_the_condition_of_root_only_where_everyone_does_has_no_root(condition: Any) -> None:
    rights = compute_service_rights(central([RoleRecord("root", condition=condition)]), PermissionFacts(STAFF), NOW)
    assert not rights.is_root


def test_denial_by_a_window_does_not_take_a_right_away() -> None:
    """The user has the rule of the schema while the window is closed, and everyone else has none all the time."""
    denied = {"private_data": {"can_manage_keys": {"value": False}}}
    window = {"tag": "staff", "time": {"from": NOW - 100}}
    records = [RoleRecord("no", denied, condition=window), RoleRecord("all", denied, condition={"everyone": True})]
    own = OwnRecord(private_data={"can_manage_keys": {"value": True}})
    schema = {"can_manage_keys": {"value": True}}
    assert not compute_service_rights(central(records, schema), PermissionFacts(STAFF), NOW).rules
    assert compute_service_rights(central(records, schema), PermissionFacts(STAFF, own), NOW).rules


def test_assigned_role_counts_although_its_condition_does_not_hold() -> None:
    application = central(
        [RoleRecord("keys", {"private_data": {"can_manage_keys": {"value": 1}}}, condition={"tag": "on_call"})]
    )
    for expired, rules in ((0, {"can_manage_keys"}), (NOW - 1, set())):
        own = OwnRecord(decode_assignments([{"name": "keys", "expired": expired}]))
        assert compute_service_rights(application, PermissionFacts(STAFF, own), NOW).rules == rules


def test_guest_has_no_rights_over_the_service() -> None:
    application = central([RoleRecord("root", condition={"tag": "staff"})])
    secret = OwnRecord(secret_data={"application": {"canModifySchema": {"value": True}}})
    guest = replace(STAFF, cannot_administer=True)
    assert compute_service_rights(application, PermissionFacts(guest, secret), NOW) == ServiceRights(
        is_root=False, rules=frozenset(), over_central=False
    )


def test_own_secret_data_is_a_right_over_the_central_application() -> None:
    secret = OwnRecord(secret_data={"application": {"canModifySchema": {"value": True}}})
    rights = [compute_service_rights(central([]), PermissionFacts(STAFF, own), NOW) for own in (secret, OwnRecord())]
    assert [(right.is_root, right.over_central) for right in rights] == [(False, True), (False, False)]
