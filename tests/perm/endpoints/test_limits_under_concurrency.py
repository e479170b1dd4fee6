"""Limits hold under concurrent requests, over two workers. With SSO_TEST_ROUNDS=20, under fifty, in two rounds."""

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.kit.browser import query
from tests.kit.long_tests import IS_LONG_RUN
from tests.perm.endpoints.conftest import ApiResponse, ApiUser, Studio
from tests.perm.endpoints.connections import ROUNDS, Connection, run_concurrently

PARALLEL = 50 if IS_LONG_RUN else 16
TIMES = max(1, ROUNDS // 10)
_numbers = itertools.count(1)

# It adds many users, whom other tests would read.
pytestmark = [pytest.mark.timeout(60 + 30 * TIMES), pytest.mark.two_workers]


def race(studio: Studio, user: ApiUser, calls: Sequence[Callable[[Connection], ApiResponse]]) -> Counter[int]:
    """The number of responses of each status, which are only OK, conflict or "busy"."""
    responses = run_concurrently(studio.server, [(user, call) for call in calls])
    for response in responses:
        assert (response.status == 200) == (response.body["status"] == "OK")
        assert response.status in (200, 409, 503), response.body
    return Counter(response.status for response in responses)


def same(path: str, **body: Any) -> list[Callable[[Connection], ApiResponse]]:
    return [lambda connection: connection.call(path, **body)] * PARALLEL


@pytest.fixture(scope="module")
def crowd(studio: Studio) -> list[str]:
    """Users without a login."""
    ids = [str(7_000_000 + number) for number in range(PARALLEL)]
    studio.server.apply({"users": [{"user_id": user_id, "login": f"c{user_id}@example.com"} for user_id in ids]})
    return ids


@pytest.mark.parametrize("_", range(TIMES))
def test_concurrent_saves_create_exactly_two_access_keys(studio: Studio, _: int) -> None:
    app = studio.application()
    result = race(studio, studio.root, same("accessKey", action="save", application_id=app, data={}))
    assert result[200] == 2
    assert len(studio.root.call("accessKey", action="get", application_id=app).data) == 2


@pytest.mark.parametrize("_", range(TIMES))
def test_concurrent_assignments_respect_the_user_limit(studio: Studio, crowd: list[str], _: int) -> None:
    app = studio.application()
    studio.role(app, "captain", "lead", user_limit=1)

    def give(user_id: str) -> Callable[[Connection], ApiResponse]:
        data = {"user_id": user_id, "roles": ["captain"]}
        return lambda connection: connection.call("meta/data", action="save", application_id=app, data=data)

    assert race(studio, studio.root, [give(user_id) for user_id in crowd])[200] == 1
    assert len(query(studio.server, "SELECT FROM role_assignments WHERE application_id = $1", app)) == 1


@pytest.mark.parametrize("_", range(TIMES))
def test_concurrent_publishes_respect_the_project_limit(studio: Studio, _: int) -> None:
    ann = studio.user()
    studio.give_rules(ann, can_create_projects="1")

    def publish(title: str) -> Callable[[Connection], ApiResponse]:
        return lambda connection: connection.call("publish", project=title)

    assert race(studio, ann, [publish(f"Race {next(_numbers)}") for _ in range(PARALLEL)])[200] == 1
    assert ann.call("user/info").body["projects"] == 1


@pytest.mark.parametrize("_", range(TIMES))
def test_concurrent_publishes_of_one_title_create_one_project(studio: Studio, _: int) -> None:
    title = f"Same Title {next(_numbers)}"
    variants = (title, title.lower(), title.upper(), title.replace(" ", "_"), title.swapcase())

    def publish(title: str) -> Callable[[Connection], ApiResponse]:
        return lambda connection: connection.call("publish", project=title)

    calls = [publish(variants[number % len(variants)]) for number in range(PARALLEL)]
    assert race(studio, studio.root, calls)[200] == 1
    project_id = title.lower().replace(" ", "_")
    members = studio.root.call("project/membership", action="get", data={"id": project_id}).data["users"]
    assert [member["user_id"] for member in members] == [studio.root.user_id]


@pytest.mark.parametrize("_", range(TIMES))
def test_concurrent_saves_of_one_name_create_one_application(studio: Studio, _: int) -> None:
    ann = studio.user()
    project = studio.project(ann)
    data = {"name": "Only one", "project_id": project}
    assert race(studio, ann, same("application", action="save", data=data))[200] == 1
    options = {"with_apps_data": True, "project_id": project}
    result = ann.call("meta/data", action="get", application_id=1, data={}, options=options).data
    assert len(result["apps"][project]) == 1


@pytest.mark.parametrize("_", range(TIMES))
def test_concurrent_saves_never_give_a_group_more_than_100_users(studio: Studio, _: int) -> None:
    group = studio.group(studio.project(), *(str(number) for number in range(1, 96)))
    lists = [[str(number) for number in range(start * 1000, start * 1000 + 100)] for start in range(1, PARALLEL + 1)]

    def put(users: list[str]) -> Callable[[Connection], ApiResponse]:
        return lambda connection: connection.call("group/access", group_id=group, data={"users": users})

    race(studio, studio.root, [put(users) for users in lists])
    final = studio.root.call("group/access", group_id=group, data={}).data["users"]
    assert final in lists  # one of the saves as a whole


@pytest.mark.parametrize("_", range(TIMES))
def test_one_of_concurrent_saves_with_the_same_if_match_succeeds(studio: Studio, _: int) -> None:
    app = studio.application()

    def save(value: int) -> Callable[[Connection], ApiResponse]:
        data = {"public_data": {"a": {"value": value}}}

        def call(connection: Connection) -> ApiResponse:
            connection.headers["If-Match"] = "1"
            return connection.call("meta/schema", action="save", application_id=app, data=data)

        return call

    responses = run_concurrently(studio.server, [(studio.root, save(value)) for value in range(1, PARALLEL + 1)])
    won = [response for response in responses if response.status == 200]
    assert len(won) == 1
    assert {response.status for response in responses} <= {200, 409, 503}
    now = studio.root.call("meta/schema", action="get", application_id=app).data
    assert (now["version"], now) == (2, won[0].data)


@pytest.mark.parametrize("_", range(TIMES))
def test_role_that_becomes_protected_is_in_no_membership_afterwards(studio: Studio, _: int) -> None:
    """A membership that is saved concurrently is either refused, or loses the role with the change."""
    name = f"racing_{next(_numbers)}"
    rules = {"private_data": {"project": {"can_view_project": {"value": True}}}}
    role = {"name": name, "meta": rules}
    assert studio.root.call("roles", action="save", application_id=1, data=role).status == 200
    projects = [studio.project() for _ in range(10)]
    keeper = {"user_id": studio.keeper.user_id, "roles": {"project": ["admin"]}}

    def join(project: str) -> Callable[[Connection], ApiResponse]:
        users = [{"user_id": studio.root.user_id, "roles": {"project": [name]}}, keeper]
        return lambda connection: connection.call(
            "project/membership", action="save", data={"id": project, "users": users}
        )

    def protect(connection: Connection) -> ApiResponse:
        return connection.call("roles", action="save", application_id=1, data={"name": name, "protected": True})

    calls = [join(project) for project in projects] * 2
    calls.insert(10, protect)
    responses = run_concurrently(studio.server, [(studio.root, call) for call in calls])
    assert responses[10].status == 200
    assert {response.status for response in responses} <= {200, 400, 503}
    for project in projects:
        result = studio.root.call("project/membership", action="get", data={"id": project}).data
        assert name not in str(result)
    assert studio.root.call("roles", action="delete", application_id=1, data={"name": name}).status == 200
