"""Roles in requests: role records and assignments."""

from typing import Any

import pytest

from sso.core.field_errors import FieldError
from sso.perm.engine.records import Assignment
from sso.perm.input.references import check_roles_exist, encode_assignments
from sso.perm.input.roles import read_assignments, read_role
from tests.perm.evaluation import NOW, rule


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
        {"user_limit": None},
        {"user_limit": []},
        {"user_limit": 2**62},
        {"params": ["a"]},
        {"params": "a:b"},
        {"params": "a|b"},
        {"params": "a\nb"},
        {"params": 5},
        {"params": None},
        {"params": ",".join(map(str, range(65)))},
    ],
)
def test_wrong_role_record_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(FieldError):
        read_role({"name": "r"} | fields)


def test_role_name_is_required() -> None:
    with pytest.raises(FieldError, match="name: is required"):
        read_role({"meta": {}})


def test_only_given_fields_of_a_role_are_read() -> None:
    assert read_role({"name": "r", "user_limit": 3}) == ({"name": "r", "user_limit": 3}, [])
    assert read_role({"name": "r", "condition": None}) == ({"name": "r", "condition": {}}, [])


def test_sections_of_a_role_that_are_not_listed_are_ignored_with_a_warning() -> None:
    meta = {"private_data": rule("a"), "secret_data": {"application": {"canSave": {"value": True}}}, "login": {}}
    fields, warnings = read_role({"name": "r", "meta": meta, "color": "red"})
    assert fields == {"name": "r", "meta": {"private_data": rule("a")}}
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


def test_default_expired_is_for_assignments_without_an_end() -> None:
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
        [["a"]],
        [{"name": None}],
        [{"name": "a", "ttl": -1}],
        [{"name": "a", "ttl": "60"}],
        [{"name": "a", "ttl": 2**62}],
        [{"name": "a", "expired": -1}],
        [{"name": "a", "expired": "60"}],
        [{"name": "a", "ttl": 1.5}],
        [{"name": "a", "ttl": True}],
        [{"name": "a", "expired": 2**63}],
        [{"name": "a", "expired": None}],
        ["a", {"name": "a", "ttl": 5}],
        ["a\n"],
        ["a.b"],
        ["projectAccess"],
        {},
    ],
)
def test_wrong_assignment_is_refused(value: Any) -> None:
    with pytest.raises(FieldError):
        read(value)


def test_error_names_the_unknown_role() -> None:
    with pytest.raises(FieldError, match=r"roles\[1\]: there is no role boss"):
        read(["a", "boss"])


def test_encoded_assignments_have_only_the_limits_that_are_set() -> None:
    assert encode_assignments(read(["a", {"name": "b", "ttl": 5}])) == [{"name": "a"}, {"name": "b", "ttl": 5}]


def test_application_id_of_a_role_is_ignored_without_a_warning() -> None:
    assert read_role({"name": "r", "application_id": 5}) == ({"name": "r"}, [])


def test_error_names_up_to_three_wrong_fields() -> None:
    with pytest.raises(FieldError) as caught:
        read_role({"protected": 1, "user_limit": -1, "params": "a:b"}, ("roles",))
    assert caught.value.message == (
        "roles.name: is required; roles.protected: must be true or false; roles.user_limit: must not be negative"
    )
