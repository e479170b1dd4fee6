"""Concurrent changes of memberships, moves and user limits, over two workers. SSO_TEST_ROUNDS=20: four rounds."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.long_tests import IS_LONG_RUN
from tests.perm.endpoints.conftest import ApiResponse, ApiUser, Studio
from tests.perm.endpoints.connections import ROUNDS, Connection, run_concurrently

CROWD = 300 if IS_LONG_RUN else 100  # so many that a save of all of them takes a while
TIMES = max(1, ROUNDS // 5)
_numbers = itertools.count(1)
Write = Callable[[Connection], ApiResponse]

# It adds hundreds of users, whom other tests would read.
pytestmark = [pytest.mark.timeout(60 + 30 * TIMES), pytest.mark.two_workers]


@pytest.fixture(scope="module")
def crowd(studio: Studio) -> list[str]:
    """Users without a login."""
    ids = [str(8_000_000 + number) for number in range(CROWD)]
    studio.server.apply({"users": [{"user_id": user_id, "login": f"d{user_id}@example.com"} for user_id in ids]})
    return ids


def membership(project: str, admin: ApiUser, members: list[dict[str, Any]]) -> Write:
    users = [{"user_id": admin.user_id, "roles": {"project": ["admin"]}}, *members]
    return lambda connection: connection.call("project/membership", action="save", data={"id": project, "users": users})


def move(app: int, project: str) -> Write:
    return lambda connection: connection.call(
        "application", action="save", data={"application_id": app, "project_id": project}
    )


def race(studio: Studio, *writes: Write) -> list[ApiResponse]:
    return run_concurrently(studio.server, [(studio.root, write) for write in writes])


def members_of(studio: Studio, project: str) -> list[dict[str, Any]]:
    users: list[dict[str, Any]] = studio.root.call("project/membership", action="get", data={"id": project}).data[
        "users"
    ]
    return users


@pytest.mark.parametrize("_", range(TIMES))
def test_concurrent_move_and_membership_save_leave_no_role_at_the_application(
    studio: Studio, crowd: list[str], _: int
) -> None:
    source, destination = studio.project(), studio.project()
    app = studio.application(source)
    roles = {"applications": {str(app): ["app_admin"]}}
    members = [{"user_id": user_id, "roles": roles} for user_id in crowd]
    saved, moved = race(studio, membership(source, studio.keeper, members), move(app, destination))
    assert moved.status == 200
    assert saved.status in (200, 400)  # 400: the application had moved already
    assert [user["user_id"] for user in members_of(studio, source)] == [studio.keeper.user_id]


@pytest.mark.parametrize("_", range(TIMES))
def test_concurrent_removal_and_membership_save_leave_no_role_at_the_application(
    studio: Studio, crowd: list[str], _: int
) -> None:
    project = studio.project()
    app = studio.application(project)
    members = [{"user_id": user_id, "roles": {"applications": {str(app): ["app_admin"]}}} for user_id in crowd]

    def remove(connection: Connection) -> ApiResponse:
        return connection.call("application", action="delete", data={"application_id": app})

    _saved, removed = race(studio, membership(project, studio.keeper, members), remove)
    assert removed.status == 200
    assert len(members_of(studio, project)) == 1


@pytest.mark.parametrize("_", range(TIMES))
def test_concurrent_moves_require_rights_in_the_current_project(studio: Studio, _: int) -> None:
    """A request that was authorized in a project that the application has left gets a conflict."""
    projects = [studio.project() for _ in range(8)]
    app = studio.application(projects[0])
    responses = race(studio, *(move(app, project) for project in projects[1:]))
    assert {response.status for response in responses} <= {200, 409, 503}
    assert any(response.status == 200 for response in responses)


@pytest.mark.parametrize("_", range(TIMES))
def test_administrators_who_remove_each_other_concurrently_leave_one(studio: Studio, _: int) -> None:
    ann, bob = studio.users(2)
    project = studio.project(ann, bob)
    responses = run_concurrently(
        studio.server, [(ann, membership(project, ann, [])), (bob, membership(project, bob, []))]
    )
    assert sorted(response.status for response in responses) == [200, 403]
    assert len(members_of(studio, project)) == 1


def test_concurrent_access_key_save_and_move_leave_no_key(studio: Studio) -> None:
    source, destination = studio.project(), studio.project()
    for _ in range(TIMES):
        app = studio.application(source)

        def add(connection: Connection, app: int = app) -> ApiResponse:
            return connection.call("accessKey", action="save", application_id=app, data={})

        created, moved = race(studio, add, move(app, destination))
        assert moved.status == 200
        assert created.status in (200, 409)
        project = studio.root.call("audit", data={"application_id": app, "operation": "access_key.create"}).data
        if any(entry["project_id"] == source for entry in project):
            assert studio.root.call("accessKey", action="get", application_id=app).data == []


@pytest.mark.parametrize("_", range(TIMES))
def test_user_limit_holds_for_memberships_of_many_projects(studio: Studio, crowd: list[str], _: int) -> None:
    name = f"limited_{next(_numbers)}"
    studio.role(1, name, project={"can_view_project": {"value": True}}, user_limit=3)
    projects = [studio.project() for _ in range(8)]
    writes = [
        membership(project, studio.keeper, [{"user_id": user_id, "roles": {"project": [name]}}])
        for project, user_id in zip(projects, crowd, strict=False)
    ]

    def assign(connection: Connection) -> ApiResponse:
        data = {"user_id": crowd[-1], "roles": [name]}
        return connection.call("meta/data", action="save", application_id=1, data=data)

    responses = race(studio, *writes, assign)
    assert {response.status for response in responses} <= {200, 409, 503}
    assert [response.status for response in responses].count(200) <= 3
    held = [
        user for project in projects for user in members_of(studio, project) if user["roles"] == {"project": [name]}
    ]
    assigned = studio.root.call(
        "meta/data", action="get", application_id=1, data={"user_id": crowd[-1], "type": "roles"}
    ).data
    assert len(held) + assigned.count(name) == [response.status for response in responses].count(200)
    assert (
        studio.root.call("meta/data", action="save", application_id=1, data={"user_id": crowd[-1], "roles": []}).status
        == 200
    )
    assert studio.root.call("roles", action="delete", application_id=1, data={"name": name}).status == 200


def test_user_limit_counts_each_user_once_and_ended_assignments_not(studio: Studio, crowd: list[str]) -> None:
    name, root = f"limited_{next(_numbers)}", studio.root
    studio.role(1, name, project={"can_view_project": {"value": True}}, user_limit=1)
    one, two = studio.project(), studio.project()

    def give(project: str, user_id: str, **limits: Any) -> int:
        roles = {"project": [{"name": name, **limits}]}
        keeper = {"user_id": studio.keeper.user_id, "roles": {"project": ["admin"]}}
        data = {"id": project, "users": [keeper, {"user_id": user_id, "roles": roles}]}
        return root.call("project/membership", action="save", data=data).status

    def assign(user_id: str, *roles: str) -> int:
        data = {"user_id": user_id, "roles": list(roles)}
        return root.call("meta/data", action="save", application_id=1, data=data).status

    assert give(one, crowd[0]) == 200
    assert give(two, crowd[0]) == 200
    assert assign(crowd[0], name) == 200
    assert give(two, crowd[1], expired=5) == 200
    assert give(two, crowd[1]) == 409
    assert assign(crowd[1], name) == 409
    assert assign(crowd[0]) == 200
    assert give(one, crowd[1], expired=5) == 200
    assert give(two, crowd[1]) == 200
    assert (
        root.call("project", action="delete", data={"id": two}).status == 200
    )  # memberships of the removed project end
    assert give(one, crowd[2]) == 200
    assert root.call("roles", action="delete", application_id=1, data={"name": name}).status == 200


def test_user_limit_of_the_role_admin_holds_for_published_projects(studio: Studio) -> None:
    root = studio.root
    studio.project(studio.user())  # who is the administrator that the limit allows
    fields = root.call("roles", action="get", application_id=1, data={"name": "admin"}).data
    assert root.call("roles", action="save", application_id=1, data={**fields, "user_limit": 1}).status == 200
    try:
        author = studio.user()
        studio.give_rules(author, "can_create_projects")
        title = f"Limited {next(_numbers)}"
        assert author.call("publish", project=title).status == 409
        assert root.call("project", action="get", data={"id": title.lower().replace(" ", "_")}).status == 404
    finally:
        assert root.call("roles", action="save", application_id=1, data={**fields, "user_limit": 0}).status == 200
