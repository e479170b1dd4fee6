"""Trees of rules in requests: of a schema, of roles, and of own data."""

from typing import Any

import pytest

from sso.core.field_errors import FieldError
from sso.perm.input.roles import read_role
from sso.perm.input.schema import read_own_data, read_schema
from tests.perm.evaluation import NOW, rule

SECTIONS = ["public_data", "private_data", "secret_data"]
FORGED = {"projectAccess": {"p": {"private_data": {"project": {"can_manage_project": {"value": True}}}}}}


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("tree", [FORGED, {"a": FORGED}, {"a": {"b": FORGED}}, {"projectAccess": {"value": True}}])
def test_project_access_cannot_be_written(section: str, tree: Any) -> None:
    for read in (read_schema, read_own_data):
        with pytest.raises(FieldError, match="projectAccess is reserved"):
            read({section: tree})
    if section != "secret_data":
        with pytest.raises(FieldError, match="projectAccess is reserved"):
            read_role({"name": "r", "meta": {section: tree}})


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("name", ["a.b", "a/b", "a|b", "a:b", "a,b", "", " a", "é", "ａ", "a\n", "a" * 65, "__proto__"])
def test_names_that_could_forge_a_path_are_refused(section: str, name: str) -> None:
    for read in (read_schema, read_own_data):
        with pytest.raises(FieldError):
            read({section: {name: {"value": True}}})
        with pytest.raises(FieldError):
            read({section: {"a": {name: {"b": {"value": True}}}}})


@pytest.mark.parametrize("name", ["value", "params", "expired", "protected", "description"])
def test_members_of_a_rule_are_reserved_names(name: str) -> None:
    with pytest.raises(FieldError, match=r"reserved name|no rule itself"):
        read_schema({"private_data": {"a": {name: {"value": True}}}})
    with pytest.raises(FieldError, match=r"reserved name|no rule itself"):
        read_schema({"private_data": {name: {"value": True}}})


@pytest.mark.parametrize(
    "tree",
    [
        {"a": True},
        {"a": None},
        {"a": [1]},
        {"a": "x"},
        [],
        None,
        "x",
        {"value": True},
        {"a": {"value": [1]}},
        {"a": {"value": {"b": 1}}},
        {"a": {"params": "x"}},
        {"a": {"expired": 1}},
        {"a": {"description": "x"}},
        {"a": {"value": True, "b": {"value": True}}},
        {"a": {"value": True, "params": 5}},
        {"a": {"value": True, "params": "a|b"}},
        {"a": {"value": True, "params": "a:b"}},
        {"a": {"value": True, "params": "a\n"}},
        {"a": {"value": True, "protected": 1}},
        {"a": {"value": True, "description": 1}},
        {"a": {"value": "x" * 1025}},
    ],
)
def test_malformed_section_is_refused(tree: Any) -> None:
    with pytest.raises(FieldError):
        read_schema({"private_data": tree})


def nested(depth: int) -> dict[str, Any]:
    return rule(".".join(["a"] * depth))


def test_depth_and_size_are_limited() -> None:
    read_schema({"private_data": nested(32)})
    with pytest.raises(FieldError, match="32 names deep"):
        read_schema({"private_data": nested(33)})
    with pytest.raises(FieldError, match="private_data: has more than 10000"):
        read_schema({"private_data": {f"a{at}": {"value": 1} for at in range(10_001)}})


def test_length_of_the_list_of_own_data_is_limited() -> None:
    """Nested names make a list much longer than the data itself."""
    tree: dict[str, Any] = {f"a{at}": {"value": 1} for at in range(1000, 1500)}
    for _ in range(31):
        tree = {"a" * 64: tree}
    with pytest.raises(FieldError, match="private_data: has rules with more than 1000000 characters of names"):
        read_own_data({"private_data": tree})
    read_own_data({"private_data": tree}, limits_names=False)  # an export, which may be older than the limit
    read_own_data({"private_data": tree["a" * 64], "public_data": tree["a" * 64]})
    read_schema({"private_data": tree})


@pytest.mark.parametrize("value", [True, False, None, 0, 1.5, "", "text 🎲"])
def test_value_may_be_any_scalar(value: Any) -> None:
    assert read_schema({"public_data": rule("a", value)})[0] == {"public_data": rule("a", value)}


def test_parameters_are_trimmed_and_duplicates_dropped() -> None:
    found, _ = read_schema({"public_data": rule("a", params=" x y ,, ü,x y")})
    assert found == {"public_data": rule("a", params="x y,ü")}


def test_unknown_members_are_ignored_with_a_warning() -> None:
    found, warnings = read_schema({"private_data": rule("a.b", ttl=5, **{"<b>": 1}), "other": {}, "version": 7})
    assert found == {"private_data": rule("a.b")}
    assert warnings == [
        "private_data.a.b.ttl: unknown field, ignored",
        "private_data.a.b.a field: unknown field, ignored",
        "other: unknown field, ignored",
    ]


def test_only_entries_of_own_data_may_end() -> None:
    for data in ({"private_data": rule("a", expired=5)}, {"public_data": rule("a", expired=5)}):
        with pytest.raises(FieldError, match="only a user's own entries"):
            read_schema(data)
        with pytest.raises(FieldError, match="only a user's own entries"):
            read_role({"name": "r", "meta": data})
    assert read_schema({"private_data": rule("a", expired=0)})[0] == {"private_data": rule("a")}


@pytest.mark.parametrize("expired", [-1, 2**63, 2**53, "60", 1.5, True, None, [1]])
def test_expired_is_a_strict_integer(expired: Any) -> None:
    with pytest.raises(FieldError):
        read_own_data({"private_data": rule("a", expired=expired)})


def test_default_expired_is_for_entries_without_an_end() -> None:
    data = {"private_data": {"a": {"value": 1}, "b": {"value": 1, "expired": 0}, "c": {"value": 1, "expired": 9}}}
    found, _ = read_own_data(data, NOW)
    assert {name: node["expired"] for name, node in found["private_data"].items()} == {"a": NOW, "b": NOW, "c": 9}


def test_schema_members_of_a_tree_are_not_stored_in_own_data() -> None:
    found, warnings = read_own_data({"private_data": rule("a", protected=True, description="x", params="")})
    assert (found, warnings) == ({"private_data": rule("a")}, [])


@pytest.mark.parametrize(
    "login",
    [
        {"can": {"value": 1}},
        {"can": {"value": "true"}},
        {"other": {"value": True}},
        {"can": {"x": {"value": True}}},
        {"x": {}},
    ],
)
def test_wrong_login_rules_are_refused(login: Any) -> None:
    for read in (read_schema, read_own_data):
        assert read({"login": {"can": {"value": False}}})[0]["login"] == {"can": {"value": False}}
        with pytest.raises(FieldError):
            read({"login": login})


@pytest.mark.parametrize(
    "secret",
    [
        {"application": {"canRead": {"value": "yes"}}},
        {"meta": {"roles": {"canRead": {"value": True}}}},
        {"meta": {"secret": {"canWrite": {"value": "everyone"}}}},
    ],
)
def test_wrong_secret_rules_are_refused(secret: Any) -> None:
    with pytest.raises(FieldError):
        read_schema({"secret_data": secret})
    read_schema({"secret_data": {"mine": {"value": 5}, "meta": {"roles": {"canRead": {"value": "all"}}}}})


def test_schema_of_a_get_can_be_saved_unchanged() -> None:
    data = {"application_id": 10, "version": 3, "updated_at": 5, "roles": {}, "public_data": rule("a", protected=True)}
    found, warnings = read_schema(data)
    assert (found, warnings) == ({"public_data": rule("a", protected=True)}, [])
    again, _ = read_schema({**data, **found})
    assert again == found
