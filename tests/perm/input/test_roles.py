"""Role records, assignments and protected rules at save."""

from typing import Any

import pytest

from sso.perm.engine.records import Assignment
from sso.perm.errors import InvalidInput, PermissionConflict
from sso.perm.input.protected_rules import check_role_protection, check_schema_protection, shadowed_private_rules
from sso.perm.input.roles import check_roles_exist, encode_assignments, read_assignments, read_role
from tests.perm.world import NOW, giving, role, rule, schema

PROTECTED = schema({"private_data": rule("ban", False, protected=True) | rule("chat.mute")})


@pytest.mark.parametrize(
    "fields",
    [
        {"name": None},
        {"name": ""},
        {"name": "a/b"},
        {"name": "a.b"},
        {"name": "projectAccess"},
        {"name": "a" * 65},
        {"name": 5},
        {"meta": []},
        {"meta": None},
        {"meta": {"private_data": []}},
        {"description": 1},
        {"description": "x" * 1025},
        {"protected": 1},
        {"protected": "true"},
        {"default": None},
        {"condition": []},
        {"condition": {"x": 1}},
        {"user_limit": -1},
        {"user_limit": "5"},
        {"user_limit": True},
        {"user_limit": 1.0},
        {"params": ["a"]},
        {"params": "a:b"},
    ],
)
def test_wrong_role_record_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        read_role({"name": "r"} | fields)


def test_name_is_required() -> None:
    with pytest.raises(InvalidInput, match="name: is required"):
        read_role({"meta": {}})


def test_only_what_is_given_is_read() -> None:
    assert read_role({"name": "r", "user_limit": 3}) == ({"name": "r", "user_limit": 3}, [])
    assert read_role({"name": "r", "condition": None}) == ({"name": "r", "condition": {}}, [])


def test_permissions_outside_the_listed_sections_are_ignored_with_a_warning() -> None:
    meta = {"private_data": rule("a"), "secret_data": {"application": {"canSave": {"value": True}}}, "login": {}}
    found, warnings = read_role({"name": "r", "meta": meta, "color": "red"})
    assert found == {"name": "r", "meta": {"private_data": rule("a")}}
    assert warnings == [
        "color: unknown field, ignored",
        "meta.secret_data: unknown field, ignored",
        "meta.login: unknown field, ignored",
    ]


def read(value: Any, default: int = 0) -> tuple[Assignment, ...]:
    assignments, _ = read_assignments(value, default)
    check_roles_exist(assignments, {"a", "b"})
    return assignments


def test_assignment_is_a_name_or_an_object() -> None:
    assert read(["a", {"name": "b", "expired": 5, "ttl": 0}]) == (Assignment("a"), Assignment("b", 5))
    assert read([]) == ()
    assert read(["a", "a"]) == (Assignment("a"),)


def test_default_expiry_is_for_assignments_without_their_own() -> None:
    items = ["a", {"name": "b", "expired": 7}]
    assert read(items, NOW) == (Assignment("a", NOW), Assignment("b", 7))
    assert read([{"name": "a", "ttl": 5}], NOW) == (Assignment("a", 0, 5),)


@pytest.mark.parametrize(
    "value",
    [
        "a",
        {"a": 1},
        None,
        [1],
        [None],
        [[]],
        ["c"],
        [{"name": "c"}],
        [{}],
        [{"name": 1}],
        [{"name": "a", "ttl": -1}],
        [{"name": "a", "expired": -1}],
        [{"name": "a", "expired": "60"}],
        [{"name": "a", "ttl": 1.5}],
        [{"name": "a", "ttl": True}],
        [{"name": "a", "expired": 2**63}],
        [{"name": "a", "expired": None}],
        ["a", {"name": "a", "ttl": 5}],
        ["a\n"],
    ],
)
def test_wrong_assignment_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        read(value)


def test_assigning_an_unknown_role_names_it() -> None:
    with pytest.raises(InvalidInput, match=r"roles\[1\]: there is no role boss"):
        read(["a", "boss"])


def test_stored_assignments_hold_only_what_is_set() -> None:
    assert encode_assignments(read(["a", {"name": "b", "ttl": 5}])) == [{"name": "a"}, {"name": "b", "ttl": 5}]


@pytest.mark.parametrize("value", [True, False])
@pytest.mark.parametrize("section", ["private_data", "public_data"])
def test_only_protected_roles_may_include_protected_rules(section: str, value: bool) -> None:
    data = {"name": "r", "meta": {section: rule("ban", value)}}
    with pytest.raises(InvalidInput, match="ban is a protected rule"):
        check_role_protection(role(data), PROTECTED)
    check_role_protection(role(data | {"protected": True}), PROTECTED)


def test_public_role_may_include_other_rules() -> None:
    check_role_protection(role(giving("r")), PROTECTED)
    check_role_protection(role(giving("r", "chat.ban")), PROTECTED)


def test_rule_cannot_become_protected_while_a_public_role_holds_it() -> None:
    with pytest.raises(PermissionConflict) as caught:
        check_schema_protection(PROTECTED, [role(giving("ok")), role(giving("r", "ban"))])
    assert caught.value.status == 409
    check_schema_protection(PROTECTED, [role(giving("r", "ban", protected=True))])


def test_public_data_that_would_pass_for_a_private_rule_is_found() -> None:
    roles = [role(giving("r", "kick"))]
    written = rule("ban") | rule("kick") | rule("mine")
    assert shadowed_private_rules(written, PROTECTED, roles) == ["ban", "kick"]
    both = schema({"private_data": rule("ban"), "public_data": rule("ban")})
    assert shadowed_private_rules(written, both, []) == []
