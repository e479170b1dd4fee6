"""The settings of a project in requests, and the applications, groups and roles that they name."""

from typing import Any

import pytest

from sso.core.field_errors import FieldError
from sso.perm.input.project import read_project_fields, read_project_settings
from sso.perm.input.references import ProjectResources, check_services
from tests.perm.evaluation import GROUP_A, GROUP_B, application_of, project, role_giving

RESOURCES = ProjectResources.of(
    project(
        {
            "id": "p",
            "applications": [{"id": 1}, {"id": 10}, {"id": 11, "is_service": True}, {"id": 12, "removed": True}],
            "groups": [{"id": GROUP_A, "tags": ["project"]}, {"id": GROUP_B, "tags": ["other"]}],
        }
    )
)
APPLICATIONS = {10: application_of({"roles": [role_giving("r"), role_giving("top", protected=True)]})}


def action(**fields: Any) -> dict[str, Any]:
    return {"group_id": GROUP_A, "role": "r", "action": "grant"} | fields


def services(*items: Any, key: str = "10") -> dict[str, Any]:
    return {"services": {key: {"groups": list(items)}}}


@pytest.mark.parametrize(
    "settings",
    [
        services(action(action="give")),
        services(action(group_id="x")),
        services(action(role="a/b")),
        services({"role": "r"}),
        services("x"),
        services(key="x"),
        services(key="01"),
        {"services": []},
        {"services": {"10": []}},
        {"services": {"10": {"groups": {}}}},
        {"allowed_domains": "a.b"},
        {"allowed_domains": ["a@b"]},
        [],
        None,
    ],
)
def test_wrong_project_settings_are_refused(settings: Any) -> None:
    with pytest.raises(FieldError):
        read_project_settings(settings)


def test_project_settings_are_read_and_unknown_fields_ignored() -> None:
    settings = services(action(), action(action="revoke")) | {"allowed_domains": ["Example.com"]}
    stored, warnings = read_project_settings(settings | {"x": 1})
    assert (stored, warnings) == (settings, ["settings.x: unknown field, ignored"])
    check_services(stored["services"], RESOURCES, APPLICATIONS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (services(key="1"), "no application of this project"),
        (services(key="12"), "no application of this project"),
        (services(key="99"), "no application of this project"),
        (services(action(group_id="f" * 24)), "no group of this project"),
        (services(action(role="unknown")), "there is no role"),
        (services(action(role="top")), "protected role"),
    ],
)
def test_services_must_name_resources_of_the_project_and_existing_roles(settings: Any, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        check_services(read_project_settings(settings)[0]["services"], RESOURCES, APPLICATIONS)


def test_protected_role_may_be_revoked() -> None:
    check_services(services(action(role="top", action="revoke"))["services"], RESOURCES, APPLICATIONS)


def test_service_without_groups_has_none() -> None:
    assert read_project_settings({"services": {"10": {}}}) == ({"services": {"10": {"groups": []}}}, [])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([], "settings: must be an object"),
        ({"services": {"<x>": {}}}, "settings.services: a key must be an application id"),
        ({"services": {"10": {"groups": [action(), {}]}}}, "settings.services.10.groups[1].group_id: is required"),
        (
            {"allowed_domains": ["a", 1]},
            "settings.allowed_domains[1]: must be a domain, the part of a login after the @",
        ),
        ({"allowed_domains": ["a"] * 1001}, "settings.allowed_domains: must have at most 1000 items"),
    ],
)
def test_error_names_the_path_and_what_is_expected(settings: Any, message: str) -> None:
    with pytest.raises(FieldError) as caught:
        read_project_settings(settings)
    assert caught.value.message.split("; ")[0] == message


def test_project_fields_are_read_with_their_settings() -> None:
    data = {"id": "p", "title": "P 1", "aliases": ["a", "A"], "settings": {"services": {"10": {}}, "x": 1}}
    assert read_project_fields("p_1", data) == (
        {"title": "P 1", "aliases": ["a"], "settings": {"services": {"10": {"groups": []}}}},
        ["settings.x: unknown field, ignored"],
    )


@pytest.mark.parametrize(
    "data",
    [{"title": "game"}, {"title": 1}, {"description": None}, {"aliases": "a"}, {"aliases": ["p_1"]}, {"settings": []}],
)
def test_wrong_project_fields_are_refused(data: dict[str, Any]) -> None:
    with pytest.raises(FieldError):
        read_project_fields("p_1", data)
