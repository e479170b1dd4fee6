"""Rights of a caller: root, and the rights in the secret data of an application."""

import pytest

from sso.perm.engine.records import OwnRecord
from sso.perm.engine.rights import ALL_SECTIONS, Rights
from sso.perm.engine.secret_rights import secret_rights
from sso.perm.stores import builtin_roles
from tests.perm.evaluation import GROUP_A, NOW, application_of, evaluate, evaluate_with, role_giving, rule, schema


def test_only_the_role_root_is_root() -> None:
    parts = {"application_id": 1, "roles": [role_giving("not_root")], "own": {"roles": ["not_root"]}}
    assert not Rights(evaluate_with(application_of(parts), parts).effective).is_root


def test_own_secret_data_overrides_the_schema() -> None:
    base = schema({"secret_data": {"application": {"canRead": {"value": True}, "canSave": {"value": True}}}})
    own = {
        "application": {
            "canSave": {"value": False},
            "canReadSchema": {"value": True},
            "canModifySchema": {"value": True, "expired": NOW},
        },
        "meta": {"roles": {"canWrite": {"value": "all"}}, "public": {"canRead": {"value": "strange"}}},
    }
    rights = secret_rights(base, OwnRecord(secret_data=own), NOW)
    assert rights.application == {"canRead", "canReadSchema"}
    assert rights.meta["roles.canWrite"] == "all"
    assert rights.meta["public.canRead"] == "none"


def test_roles_give_no_secret_rights() -> None:
    meta = {"secret_data": {"application": {"canSave": {"value": True}}}}
    result = evaluate(roles=[{"name": "default", "meta": meta}])
    assert secret_rights(result.application.schema, result.facts.own, NOW).application == frozenset()


def test_default_rights_of_a_new_application() -> None:
    rights = Rights(evaluate(application_id=1).effective, secret_rights(builtin_roles.SCHEMA, OwnRecord(), NOW))
    assert rights.readable_sections(own=False) == {"public_data"}
    assert rights.writable_sections(own=True) == frozenset()
    assert rights.readable_sections(own=True) == {"public_data", "private_data", "roles", "secret_data", "login"}
    assert secret_rights(schema({}), OwnRecord(), NOW) == secret_rights(builtin_roles.SCHEMA, OwnRecord(), NOW)


@pytest.mark.parametrize(
    ("level", "own", "others"), [("self", True, False), ("all", True, True), ("none", False, False)]
)
@pytest.mark.parametrize(
    ("word", "sections"),
    [
        ("public", {"public_data"}),
        ("private", {"private_data"}),
        ("roles", {"roles"}),
        ("secret", {"secret_data", "login"}),
    ],
)
def test_can_write_allows_self_all_or_none(word: str, sections: set[str], level: str, own: bool, others: bool) -> None:
    base = schema({"secret_data": {"meta": {word: {"canWrite": {"value": level}}}}})
    rights = Rights(evaluate(application_id=1).effective, secret_rights(base, OwnRecord(), NOW))
    assert rights.writable_sections(own=True) == (sections if own else set())
    assert rights.writable_sections(own=False) == (sections if others else set())


def test_service_reads_and_writes_every_section() -> None:
    rights = Rights(evaluate(application_id=1).effective, service=True)
    assert rights.readable_sections(own=False) == rights.writable_sections(own=False) >= {"roles", "secret_data"}


def test_rights_in_a_project_are_those_of_the_resource() -> None:
    """The role covers two applications; the other one covers a group, and its condition does not hold."""
    project = {"id": "p", "applications": [{"id": 10}, {"id": 11}], "groups": [{"id": GROUP_A}]}
    member = {"applications": {"10": ["keeper"], "11": ["idle"]}, "groups": {GROUP_A: ["tagged"]}}
    tagged = role_giving("tagged", "group.can_manage_group", condition={"tag": "vip"})
    roles = [role_giving("keeper", "app.can_manage_app"), role_giving("idle", "srv.can"), tagged]
    parts = {"application_id": 1, "roles": roles, "projects": [project | {"member": member}]}
    rights = Rights(evaluate_with(application_of(parts), parts).effective)
    places = [
        ("applications", "10"),
        ("applications", "11"),
        ("applications", "12"),
        ("groups", GROUP_A),
        ("groups", "10"),
    ]
    assert [rights.has_role_at("p", *place) for place in places] == [True, True, False, False, False]
    assert [rights.has_rule_at("p", *place, "app.can_manage_app") for place in places] == [True, *[False] * 4]
    assert not rights.has_role_at("other", "applications", "10")
    assert not rights.has_rule_at("other", "applications", "10", "app.can_manage_app")


def test_root_and_operator_read_and_write_every_section() -> None:
    plain = evaluate(application_id=1).effective
    parts = {"application_id": 1, "roles": [role_giving("root")], "own": {"roles": ["root"]}}
    for rights in (Rights(plain, is_operator=True), Rights(evaluate_with(application_of(parts), parts).effective)):
        assert rights.is_root
        assert rights.readable_sections(own=False) == rights.writable_sections(own=False) == ALL_SECTIONS


@pytest.mark.parametrize(
    ("right", "reads", "writes"),
    [("can_view_applications", True, False), ("can_manage_applications", True, True), ("can_view_users", False, False)],
)
def test_rights_of_the_management_api_cover_sections(right: str, reads: bool, writes: bool) -> None:
    rights = Rights(evaluate(application_id=1).effective, management=frozenset([right]))
    assert (rights.readable_sections(own=False) == ALL_SECTIONS) is reads
    assert (rights.writable_sections(own=False) == ALL_SECTIONS) is writes


def test_root_rules_are_those_of_private_data() -> None:
    schema_with_rules = {"private_data": rule("can_view_users"), "public_data": rule("can_manage_users")}
    rights = Rights(evaluate(application_id=1, schema=schema_with_rules).effective)
    assert rights.root_rules == {"can_view_users"}
