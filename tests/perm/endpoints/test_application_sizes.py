"""The largest numbers of roles, nodes of conditions and applications: every way to save keeps to them."""

import secrets
from collections import Counter
from typing import Any

import pytest

from sso.perm.changes.size_limits import (
    MAX_APPLICATION_BYTES,
    MAX_CONDITION_NODES,
    MAX_LIST_BYTES,
    MAX_PROJECT_APPLICATIONS,
)
from sso.perm.input.schema import MAX_ROLES
from tests.kit.browser import query
from tests.perm.endpoints.conftest import FACTOR, ApiResponse, Studio
from tests.perm.endpoints.connections import run_concurrently

pytestmark = pytest.mark.two_workers

_ADD_ROLES = """INSERT INTO roles (application_id, name, condition)
    SELECT $1::int, 'r' || n, $3::jsonb FROM generate_series(1, $2::int) AS n"""
_NEW_REVISION = "UPDATE applications SET revision = revision + 1 WHERE application_id = $1"
_ADD_LONG_ROLES = """INSERT INTO roles (application_id, name, description)
    SELECT $1::int, 'long' || n, repeat('x', $3::int) FROM generate_series(1, $2::int) AS n"""
_SET_PARAMS = "UPDATE roles SET params = $3 WHERE application_id = $1 AND name = $2"
_ADD_APPLICATIONS = """INSERT INTO applications (name, project_id)
    SELECT $1 || n, $1 FROM generate_series(1, $2::int) AS n"""
_ADD_GROUP = """INSERT INTO user_groups (id, project_id, title, conditions)
    VALUES ($1, $2, 'large', jsonb_build_array(jsonb_build_object('title', 'Many', 'condition', $3::jsonb)))"""
_COUNT = "SELECT count(*) FROM roles WHERE application_id = $1"


def condition(nodes: int) -> dict[str, Any]:
    """A condition of at least two nodes; one of them is a user id."""
    return {"or": [*({"tag": f"t{number}"} for number in range(nodes - 3)), {"uid": ["1"]}]}


@pytest.fixture(scope="module")
def project_id(studio: Studio) -> str:
    return studio.project()


def full_application(studio: Studio, project_id: str, roles: int, stored: str = "{}") -> int:
    application_id = studio.application(project_id)
    query(studio.server, _ADD_ROLES, application_id, roles, stored)
    query(studio.server, _NEW_REVISION, application_id)
    return application_id


def role_count(studio: Studio, application_id: int) -> int:
    return int(query(studio.server, _COUNT, application_id)[0]["count"])


def test_schema_with_too_many_roles_is_refused_before_its_locks(studio: Studio) -> None:
    application_id = studio.application()
    data: dict[str, Any] = {"roles": {f"role{number}": {} for number in range(MAX_ROLES + 1)}}
    answer = studio.root.call("meta/schema", action="save", application_id=application_id, data=data)
    assert (answer.status, answer.body["error"]) == (400, "roles: must have at most 1000 roles")
    assert role_count(studio, application_id) == 0


def test_application_has_a_limited_number_of_roles_whichever_way_they_are_saved(
    studio: Studio, project_id: str
) -> None:
    app, root = full_application(studio, project_id, MAX_ROLES - 1), studio.root

    def save(number: int) -> Any:
        data = {"name": f"new{number}"}
        return lambda connection: connection.call("roles", action="save", application_id=app, data=data)

    calls = [(root, save(number)) for number in range(5)]
    responses: list[ApiResponse] = run_concurrently(studio.server, calls)
    assert Counter(response.status for response in responses) == {200: 1, 409: 4}
    refused = next(response for response in responses if response.status == 409)
    assert f"an application has at most {MAX_ROLES} roles" in refused.body["error"]

    schema: dict[str, Any] = {"roles": {"another": {}}}
    assert root.call("meta/schema", action="save", application_id=app, data=schema).status == 409
    headers = {"Authorization": f"Bearer {root.jwt}", "Factor": FACTOR}
    body = {"application_id": app, "name": "another"}
    assert studio.client.post("/api/admin/roles", json=body, headers=headers).status_code == 409
    document = {"roles": {str(app): [{"name": "another"}]}}
    assert studio.client.post("/api/admin/state", json=document, headers=headers).status_code == 409
    done = studio.server.sso("role", "add", "another", "--app", str(app), check=False)
    assert done.returncode == 1, done.stderr
    assert role_count(studio, app) == MAX_ROLES

    changed = root.call("roles", action="save", application_id=app, data={"name": "r1", "description": "changed"})
    assert changed.status == 200, "a role that exists can be changed"
    assert root.call("roles", action="delete", application_id=app, data={"name": "r2"}).status == 200
    assert root.call("roles", action="save", application_id=app, data={"name": "another"}).status == 200


def test_conditions_of_roles_and_groups_have_a_limited_number_of_nodes_together(
    studio: Studio, project_id: str
) -> None:
    """Two hundred roles leave room for 200 nodes."""
    stored = '{"or": [' + ", ".join('{"tag": "x"}' for _ in range(97)) + ', {"uid": ["1"]}]}'  # 100 nodes
    root, roles = studio.root, MAX_CONDITION_NODES // 100 - 2
    app = full_application(studio, project_id, roles, stored)
    group_id = studio.group(project_id)

    def save_role(nodes: int) -> int:
        data = {"name": "more", "condition": condition(nodes)}
        return root.call("roles", action="save", application_id=app, data=data).status

    def save_group(nodes: int) -> int:
        access = {"conditions": [{"title": "Some", "condition": condition(nodes)}]}
        return root.call("group/access", group_id=group_id, data=access).status

    assert save_role(100) == 200
    assert save_group(101) == 409
    assert save_group(100) == 200
    assert save_role(101) == 409
    other = full_application(studio, studio.project(), roles + 1, stored)
    move = {"application_id": other, "project_id": project_id, "name": "Moved"}
    assert root.call("application", action="save", data=move).status == 200
    assert save_group(101) == 409, "the applications of the project have the same groups"
    query(studio.server, _ADD_ROLES.replace("'r'", "'s'"), app, 5, stored)
    query(studio.server, _NEW_REVISION, app)
    assert save_role(98) == 200, "an application that was too large before can become smaller"


def test_groups_of_a_project_without_applications_have_a_limited_number_of_nodes(studio: Studio) -> None:
    project_id = studio.project()
    group_id = studio.group(project_id)
    stored = '{"or": [' + ", ".join('{"tag": "x"}' for _ in range(MAX_CONDITION_NODES - 103)) + ', {"uid": ["1"]}]}'
    query(studio.server, _ADD_GROUP, secrets.token_hex(12), project_id, stored)  # leaves room for 100 nodes

    def save_group(nodes: int) -> ApiResponse:
        access = {"conditions": [{"title": "Some", "condition": condition(nodes)}]}
        return studio.root.call("group/access", group_id=group_id, data=access)

    refused = save_group(101)
    assert refused.status == 409
    assert f"project {project_id}: the conditions of its groups have at most 20000 nodes" in refused.body["error"]
    assert save_group(100).status == 200


def test_schema_and_roles_of_an_application_have_a_limited_size_together(studio: Studio, project_id: str) -> None:
    app, root = studio.application(project_id), studio.root
    query(studio.server, _ADD_LONG_ROLES, app, 8, MAX_APPLICATION_BYTES // 8)
    query(studio.server, _NEW_REVISION, app)
    assert root.call("meta/schema", action="get", application_id=app).status == 200, "what exists can be read"
    refused = root.call("roles", action="save", application_id=app, data={"name": "another"})
    assert refused.status == 409
    assert f"at most {MAX_APPLICATION_BYTES} characters of JSON" in refused.body["error"]
    schema = {"private_data": {"chat": {"kick": {"value": True}}}}
    assert root.call("meta/schema", action="save", application_id=app, data=schema).status == 409
    shorter = {"name": "long1", "description": "short"}
    assert root.call("roles", action="save", application_id=app, data=shorter).status == 200
    assert root.call("roles", action="save", application_id=app, data={"name": "another"}).status == 200


def test_params_of_a_role_count_for_each_of_its_rules(studio: Studio, project_id: str) -> None:
    app, root = studio.application(project_id), studio.root
    params = ",".join(f"{number:02}" + "x" * 126 for number in range(64))
    rules = MAX_LIST_BYTES // len(params) // 2  # of two roles that are allowed together

    def save_role(name: str, rules: int, params: str) -> ApiResponse:
        meta = {"private_data": {f"r{number}": {"value": True} for number in range(rules)}}
        data = {"name": name, "meta": meta, "params": params}
        return root.call("roles", action="save", application_id=app, data=data)

    assert save_role("first", rules - 10, params).status == 200
    assert save_role("second", rules - 10, params.replace("x", "y")).status == 200, "the same rules with other params"
    refused = save_role("third", rules, params.replace("x", "z"))
    assert refused.status == 409
    assert "its params and the params of its role" in refused.body["error"]
    assert f"at most {MAX_LIST_BYTES} characters together" in refused.body["error"]
    assert save_role("third", rules, "").status == 200
    query(studio.server, _SET_PARAMS, app, "third", params)
    query(studio.server, _NEW_REVISION, app)
    assert root.call("roles", action="get", application_id=app, data={"name": "third"}).status == 200
    assert save_role("third", rules + 1, params).status == 409
    assert save_role("third", rules - 1, params).status == 200, "what is too large can be made smaller"


def test_project_has_a_limited_number_of_applications(studio: Studio) -> None:
    project_id, root = studio.project(), studio.root
    query(studio.server, _ADD_APPLICATIONS, project_id, MAX_PROJECT_APPLICATIONS - 1)
    last = studio.application(project_id)
    created = root.call("application", action="save", data={"name": "One more", "project_id": project_id})
    assert created.status == 409
    assert f"project_id: a project has at most {MAX_PROJECT_APPLICATIONS} applications" in created.body["error"]
    other = studio.application(studio.project())
    move = {"application_id": other, "project_id": project_id, "name": "Moved"}
    assert root.call("application", action="save", data=move).status == 409
    renamed = {"application_id": last, "name": "Renamed"}
    assert root.call("application", action="save", data=renamed).status == 200
